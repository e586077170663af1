"""The releases of a package, as pip lists them."""

from __future__ import annotations

from pathlib import Path

import pytest

from engdiff.environments import index, uvtool
from engdiff.environments.listing import list_versions


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings of this machine."""
    monkeypatch.setattr(index, "_pip_files", lambda environ, home: [])
    monkeypatch.setattr(index, "_SYSTEM_UV", tmp_path / "etc-uv.toml")


PIP_SAYS = """WARNING: Location 'file:///gone/six/' is ignored: it is neither a file nor a directory.
six (2.0.post1)
Available versions: 2.0.post1, 2.0, 1.10, 1.9, 2.1rc1, nonsense
  INSTALLED: 1.0
"""


@pytest.mark.parametrize(
    ("code", "output", "versions"),
    [
        (0, PIP_SAYS, ("2.0.post1", "2.0", "1.10", "1.9")),
        (1, "ERROR: No matching distribution found for six", ()),
        (0, "something else", ()),
    ],
)
def test_listing(code: int, output: str, versions: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def run(words: list[str], **_: object) -> uvtool.UvResult:
        asked.append(words)
        return uvtool.UvResult(code, tuple(output.splitlines()))

    monkeypatch.setattr(uvtool, "run", run)
    assert list_versions("six", python="3.12") == versions
    assert asked[0][-6:] == ["pip", "index", "versions", "--only-binary", ":all:", "six"]
    assert "3.12" in asked[0]

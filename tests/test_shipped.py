"""Where shipped data lies: in the package, or at the root of a checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from engdiff import shipped
from engdiff.errors import EngdiffError


def test_a_checkout_has_its_data_at_the_root() -> None:
    assert (shipped.folder("profiles") / "gpus" / "h100-80gb.toml").is_file()


def test_an_installed_package_has_it_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "engdiff" / "profiles").mkdir(parents=True)
    monkeypatch.setattr(shipped, "PACKAGE", tmp_path / "engdiff")
    assert shipped.folder("profiles") == tmp_path / "engdiff" / "profiles"


def test_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "PACKAGE", tmp_path / "engdiff")
    with pytest.raises(EngdiffError, match="incomplete"):
        shipped.folder("profiles")

"""Our ``sitecustomize`` brings probes in, keeps another one alive, and follows imports without changing them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from engdiff.engines.site_hook import site_files

PROBE = """
from engdiff_probe_kit import AfterImport

def seen(module):
    print("saw", module.__name__, module.value)

def install():
    AfterImport({"toy_package.inner": seen})
    print("installed")
"""


def folder(path: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text, encoding="utf-8")
    return str(path)


def run(code: str, *places: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter with these places on its path."""
    environ = {"PYTHONPATH": ":".join(places), "PATH": ""}
    words = [sys.executable, "-c", code]
    return subprocess.run(words, env=environ, capture_output=True, text=True, check=True, timeout=60)


def test_a_probe_follows_an_import(tmp_path: Path) -> None:
    hook = folder(tmp_path / "hook", site_files(PROBE, "engdiff_toy_probe"))
    package = {"toy_package/__init__.py": "", "toy_package/inner.py": "value = 3\n"}
    done = run("import toy_package.inner as m; print(m.__spec__.name)", hook, folder(tmp_path / "site", package))
    assert done.stdout.split("\n")[:3] == ["installed", "saw toy_package.inner 3", "toy_package.inner"]
    assert done.stderr == ""


def test_another_sitecustomize_still_runs(tmp_path: Path) -> None:
    hook = folder(tmp_path / "hook", site_files(PROBE, "engdiff_toy_probe"))
    theirs = folder(tmp_path / "theirs", {"sitecustomize.py": "print('theirs', __name__)\n"})
    assert run("pass", hook, theirs).stdout == "installed\ntheirs sitecustomize\n"


def test_a_probe_that_fails_is_told_and_in_nobodys_way(tmp_path: Path) -> None:
    hook = folder(tmp_path / "hook", site_files("def install():\n    1 / 0\n", "engdiff_toy_probe"))
    done = run("print('goes on')", hook)
    assert done.stdout == "goes on\n"
    assert "engdiff_toy_probe.py: ZeroDivisionError" in done.stderr


def test_what_follows_an_import_and_fails_is_told(tmp_path: Path) -> None:
    broken = PROBE.replace("module.value", "module.no_such_name")
    hook = folder(tmp_path / "hook", site_files(broken, "engdiff_toy_probe"))
    package = folder(tmp_path / "site", {"toy_package/__init__.py": "", "toy_package/inner.py": "value = 3\n"})
    done = run("import toy_package.inner as m; print(m.value)", hook, package)
    assert done.stdout == "installed\n3\n"
    assert "engdiff probe: toy_package.inner: AttributeError" in done.stderr

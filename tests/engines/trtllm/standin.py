"""An interpreter in which ``tensorrt_llm`` is the stand-in of ``fake/``, and the scenarios that it shows.

A real virtual environment, so that the launch, the probe and the look at installed packages are the real ones. It sees
the libraries that the engine needs as well (click, pydantic, PyYAML) in the environment of the tests.
"""

from __future__ import annotations

import json
import shutil
import sys
import sysconfig
import venv
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

FAKE = Path(__file__).parent / "fake" / "tensorrt_llm"
SCRIPT = "#!{python}\nimport sys\nfrom tensorrt_llm.commands.serve import main\nsys.exit(main())\n"


@dataclass(frozen=True)
class Scenario:
    """What one start shows. ``fault``: see ``fake/tensorrt_llm/commands/serve.py`` and ``executor``."""

    log: tuple[str, ...] = ()
    fault: str | None = None
    line_seconds: float = 0.001
    blocks: int = 1000
    max_seq_len: int = 4097
    endpoints: dict[str, str] = field(default_factory=dict)
    iteration: dict[str, Any] = field(default_factory=lambda: {"iter": 1})

    def write(self, folder: Path) -> str:
        """The value of the variable that makes the stand-in show it: ``TLLM_STANDIN=...``."""
        path = folder / "scenario.json"
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")
        return f"TLLM_STANDIN={path}"


def interpreter(folder: Path, version: str, *, script: bool = True) -> Path:
    """The Python of a new environment that has TensorRT-LLM of this version; without ``script`` no trtllm-serve."""
    venv.create(folder, with_pip=False, symlinks=True)
    packages = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    shutil.copytree(FAKE, packages / "tensorrt_llm", ignore=shutil.ignore_patterns("__pycache__"))
    info = packages / f"tensorrt_llm-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: tensorrt-llm\nVersion: {version}\n")
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = folder / "bin" / "python"
    if script:
        serve = folder / "bin" / "trtllm-serve"
        serve.write_text(SCRIPT.format(python=python))
        serve.chmod(0o755)
    return python

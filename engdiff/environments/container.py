"""One engine in a container, as a command line of docker or podman. Nothing is run here but ``--version``.

Paths are the same inside and outside, so that a plan made for this machine holds in there.
"""

from __future__ import annotations

import secrets
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from engdiff.redact import is_secret_name, redact_text

SHARED_MEMORY = "--shm-size=32g"
"""Ranks exchange data through /dev/shm, of which docker gives 64 MB. The engines' documentation gives it 32 GB (SGLang)
or the host's (``--ipc=host``: vLLM, TensorRT-LLM); a size of the container's own leaves no segment behind on the host
when the container is killed. It is a limit: what nobody uses takes no memory."""

OF_THIS_MACHINE = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "CUDA_HOME", "CUDA_PATH", "CUDA_ROOT")
"""Variables of the shell that name files of this machine; those of the image hold in there."""

VISIBLE = "CUDA_VISIBLE_DEVICES"
"""Becomes the selection of GPUs: in the container they are counted anew."""

_TOP = ("", "bin", "boot", "dev", "etc", "home", "lib", "lib64", "opt", "proc", "root", "run", "sbin", "sys", "tmp")
_SYSTEM = frozenset(Path("/", name) for name in (*_TOP, "usr", "var"))
"""Folders that an image has of its own: mounted, they would hide it."""

_VERSION_LIMIT_S = 20.0


class Tool(NamedTuple):
    """docker or podman, and the program to call."""

    kind: Literal["docker", "podman"]
    program: str


def find_tool() -> Tool | None:
    """The first of docker and podman on the PATH; podman may go by the name of docker."""
    for name in ("docker", "podman"):
        if program := shutil.which(name):
            return Tool("podman" if name == "podman" or "podman" in _version(program) else "docker", program)
    return None


def _version(program: str) -> str:
    with suppress(OSError, subprocess.TimeoutExpired):
        return subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=_VERSION_LIMIT_S, check=False
        ).stdout.lower()
    return ""


@dataclass(frozen=True)
class ContainerRun:
    """What is to run in a container.

    ``argv`` is the process inside. ``folder`` (of engdiff's) is mounted read-only but for ``output``, where the probe
    writes files into a folder that the user owns; ``None``: no probe. ``words`` are the user's: files that they name
    are mounted. ``added`` are variables with their values, ``passed`` those of the user.
    """

    image: str
    argv: tuple[str, ...]
    port: int
    model: str
    words: tuple[str, ...]
    added: Mapping[str, str]
    passed: Mapping[str, str]
    uses_gpu: bool
    folder: Path | None = None
    output: Path | None = None
    keeps_entrypoint: bool = False
    options: tuple[str, ...] = ()
    name: str = field(default_factory=lambda: f"engdiff-{secrets.token_hex(4)}")


def command(run: ContainerRun, tool: Tool, shell: Mapping[str, str]) -> tuple[str, ...]:
    """The command line. ``shell`` is the environment that the command gets, from which secrets are taken."""
    cache = hugging_face_cache(run.passed, shell) if not Path(run.model).exists() else {}
    passed = {name: run.passed[name] for name in sorted(run.passed) if name != VISIBLE or not _is_nvidia(run)}
    variables = {**passed, **cache, **run.added}
    mounts = _mounts(run, cache.values())
    program = run.argv if run.keeps_entrypoint else run.argv[1:]
    return (
        tool.program,
        "run",
        "--rm",
        "--init",
        "--name",
        run.name,
        *_gpus(run, tool, shell),
        SHARED_MEMORY,
        *(("--security-opt", "label=disable") if tool.kind == "podman" else ()),
        *run.options,
        "-p",
        f"127.0.0.1:{run.port}:{run.port}",
        *(word for path, mode in mounts.items() for word in _mount(path, mode)),
        *(("-w", str(Path.cwd())) if any(_is_relative(word) for word in _paths(run.words)) else ()),
        *(word for name, value in variables.items() for word in ("-e", _variable(name, value, shell))),
        *(() if run.keeps_entrypoint else ("--entrypoint", run.argv[0])),
        run.image,
        *program,
    )


def removal(run: ContainerRun, tool: Tool) -> tuple[str, ...]:
    """What ends the container, whatever became of the command that started it."""
    return (tool.program, "rm", "--force", "--volumes", run.name)


# --- variables --------------------------------------------------------------------------------------------------


def is_secret(name: str, value: str) -> bool:
    """Whether a variable must stand on no command line."""
    return bool(value) and (is_secret_name(name) or redact_text(value) != value)


def _variable(name: str, value: str, shell: Mapping[str, str]) -> str:
    """By its name alone where the environment holds it: so no secret stands on a command line."""
    return name if is_secret(name, value) or shell.get(name) == value else f"{name}={value}"


def hugging_face_cache(variables: Mapping[str, str], shell: Mapping[str, str]) -> dict[str, str]:
    """Variables that name the user's cache of models, for a model that is an id; without those that are not there."""
    named = {n: variables.get(n) or shell.get(n) for n in ("HF_HOME", "HF_HUB_CACHE")}
    found = {n: Path(value).expanduser().absolute() for n, value in named.items() if value}
    if not found:
        base = shell.get("XDG_CACHE_HOME") or "~/.cache"
        found = {"HF_HOME": Path(base).expanduser().absolute() / "huggingface"}
    return {name: str(path) for name, path in found.items() if path.is_dir()}


# --- devices ----------------------------------------------------------------------------------------------------


def _is_nvidia(run: ContainerRun) -> bool:
    return run.uses_gpu and "rocm" not in run.image.lower()


def _gpus(run: ContainerRun, tool: Tool, shell: Mapping[str, str]) -> tuple[str, ...]:
    if not run.uses_gpu:
        return ()
    if not _is_nvidia(run):
        group = "video" if tool.kind == "docker" else "keep-groups"
        return ("--device", "/dev/kfd", "--device", "/dev/dri", "--group-add", group)
    wanted = run.passed.get(VISIBLE, shell.get(VISIBLE))
    if wanted is not None and (not wanted or wanted.startswith("-") or wanted == "NoDevFiles"):
        return ()
    if tool.kind == "podman":
        devices = wanted.split(",") if wanted else ["all"]
        return tuple(word for one in devices for word in ("--device", f"nvidia.com/gpu={one.strip()}"))
    return ("--gpus", f'"device={wanted}"' if wanted else "all")


# --- mounts -----------------------------------------------------------------------------------------------------

Mode = Literal["ro", "rw"]


def _mounts(run: ContainerRun, caches: Iterable[str]) -> dict[Path, Mode]:
    """Every path once, and none below another that is mounted the same way."""
    wanted: dict[Path, Mode] = {}
    if run.folder and run.output:
        wanted |= {run.folder: "ro", run.output: "rw"}
    wanted |= dict.fromkeys(_of_model(run.model), "ro")
    for path in map(Path.absolute, _paths(run.words)):
        wanted.setdefault(path, "rw" if path.is_dir() else "ro")
    wanted |= dict.fromkeys(map(Path, caches), "rw")
    return {
        path: mode
        for path, mode in wanted.items()
        if not any(other in path.parents and wanted[other] in (mode, "rw") for other in wanted)
    }


def _mount(path: Path, mode: Mode) -> tuple[str, str]:
    if ":" in str(path):
        read_only = ",readonly" if mode == "ro" else ""
        return "--mount", f"type=bind,source={path},target={path}{read_only}"
    return "-v", f"{path}:{path}{':ro' if mode == 'ro' else ''}"


def _of_model(model: str) -> Iterator[Path]:
    """The model's folder (a file's may hold its other parts), and the folders where links in it lead."""
    path = Path(model)
    if not path.exists():
        return
    folder = path if path.is_dir() else path.parent
    yield path if folder in _SYSTEM else folder
    links = [entry for entry in sorted(folder.iterdir()) if entry.is_symlink()] if path.is_dir() else [path]
    for link in links:
        target = link.resolve()
        if target.exists() and folder.resolve() not in target.parents:
            yield target if target.parent in _SYSTEM else target.parent


def _paths(words: Iterable[str]) -> Iterator[Path]:
    """Files and folders of this machine that the user's words name; a folder of the system is none."""
    for word in words:
        path = Path(word.rpartition("=")[2])
        with suppress(OSError, ValueError):
            if ("/" in str(path) or path.suffix) and path.exists() and path.absolute() not in _SYSTEM:
                yield path


def _is_relative(path: Path) -> bool:
    return not path.is_absolute()

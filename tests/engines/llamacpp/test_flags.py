"""llama-server's flags: words and variables to fields, and back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff.engines.llamacpp import flags
from engdiff.engines.llamacpp.flags import Flag, FlagError, flag_for, render, render_env, translate
from engdiff.engines.llamacpp.flags.table import JsonValue

OLDEST, NEWEST = "0.2.7", "2026.10.11549"
VERSIONS = (OLDEST, "0.2.11", "0.2.14", "2026.5.9093", "2026.8.10229", "2026.9.11063", NEWEST)


def fields(words: str, version: str = NEWEST, **environ: str) -> dict[str, JsonValue]:
    return translate(words.split(), environ, version).fields


@pytest.mark.parametrize(
    ("words", "version", "expected"),
    [
        ("-np 4", NEWEST, {"n_parallel": 4}),
        ("-np -1", NEWEST, {"n_parallel": -1}),
        ("--n_predict 7", NEWEST, {"n_predict": 7}),
        ("-c 4096 -c 8192", NEWEST, {"n_ctx": 8192}),
        ("-c 0", NEWEST, {"n_ctx": 0, "fit_params_min_ctx": -1}),
        ("-c 0", "0.2.9", {"n_ctx": 0}),
        ("-ngl all", NEWEST, {"n_gpu_layers": -2}),
        ("-ngl auto", "0.2.9", {"n_gpu_layers": -1}),
        ("-ngl 12", OLDEST, {"n_gpu_layers": 12}),
        ("-fa on", NEWEST, {"flash_attn_type": "LLAMA_FLASH_ATTN_TYPE_ENABLED"}),
        ("-fa 0", NEWEST, {"flash_attn_type": "LLAMA_FLASH_ATTN_TYPE_DISABLED"}),
        ("-fa -1", NEWEST, {"flash_attn_type": "LLAMA_FLASH_ATTN_TYPE_AUTO"}),
        ("-ctk q8_0 -ctv f16", NEWEST, {"cache_type_k": "GGML_TYPE_Q8_0", "cache_type_v": "GGML_TYPE_F16"}),
        ("--no-kv-unified", NEWEST, {"kv_unified": False}),
        ("-no-kvu -kvu", NEWEST, {"kv_unified": True}),
        ("-kvu", OLDEST, {"kv_unified": True}),
        ("--no-mmap", OLDEST, {"use_mmap": False}),
        ("--mmap", "0.2.9", {"use_mmap": True, "use_direct_io": False}),
        ("--no-mmap", "2026.8.10229", {"load_mode": "LLAMA_LOAD_MODE_NONE"}),
        ("--mmap --mlock", "2026.9.10809", {"load_mode": "LLAMA_LOAD_MODE_MLOCK"}),
        ("--load-mode mmap+mlock", NEWEST, {"load_mode": "LLAMA_LOAD_MODE_MMAP_MLOCK"}),
        ("-nkvo", NEWEST, {"no_kv_offload": True}),
        ("--no-perf", NEWEST, {"no_perf": True, "sampling.no_perf": True}),
        ("-fit off", NEWEST, {"fit_params": False}),
        ("-fitt 512", "0.2.8", {"fit_params_target": 512 * 2**20}),
        ("-fitt 512", NEWEST, {"fit_params_target": [512 * 2**20] * 16}),
        ("-fitt 1,2", NEWEST, {"fit_params_target": [2**20, 2 * 2**20] + [2**30] * 14}),
        ("-ts 3/1", NEWEST, {"tensor_split": [3.0, 1.0] + [0.0] * 126}),
        ("--rope-scale 4", NEWEST, {"rope_freq_scale": 0.25}),
        ("--temp -1", NEWEST, {"sampling.temp": 0.0, "sampling.user_sampling_config": 64}),
        ("--seed -1", NEWEST, {"sampling.seed": 2**32 - 1}),
        ("--top-k 5 --top-p 0.5", NEWEST,
         {"sampling.top_k": 5, "sampling.top_p": 0.5, "sampling.user_sampling_config": 6}),
        ("--repeat-last-n 100", NEWEST,
         {"sampling.penalty_last_n": 100, "sampling.n_prev": 100, "sampling.user_sampling_config": 128}),
        ("--timeout 9", NEWEST, {"timeout_read": 9, "timeout_write": 9}),
        ("--rerank", NEWEST, {"embedding": True, "pooling_type": "LLAMA_POOLING_TYPE_RANK"}),
        ("--api-key a,b --api-key c", NEWEST, {"api_keys": ["a", "b", "c"]}),
        ("--host 10.0.0.1", "2026.9.11063", {"hostname": "10.0.0.1"}),
        ("--host ::1,127.0.0.1", NEWEST, {"hostnames": ["::1", "127.0.0.1"]}),
        ("--alias x", "0.2.12", {"model_alias": "x"}),
        ("--alias x,y", "0.2.13", {"model_alias": ["x", "y"]}),
        ("--lora a.gguf --lora b.gguf", NEWEST,
         {"lora_adapters": [{"path": "a.gguf", "scale": 1.0}, {"path": "b.gguf", "scale": 1.0}]}),
        ("--lora-scaled a.gguf:0.5", NEWEST, {"lora_adapters": [{"path": "a.gguf", "scale": 0.5}]}),
        ("-ot a=CPU -ot b=CPU", NEWEST, {"tensor_buft_overrides": "a=CPU,b=CPU"}),
        ("-md d.gguf", "0.2.10", {"speculative.model.path": "d.gguf"}),
        ("-md d.gguf", "0.2.12", {"speculative.mparams_dft.path": "d.gguf"}),
        ("-md d.gguf", "2026.5.9093", {"speculative.draft.mparams.path": "d.gguf"}),
        ("--draft-max 8", "0.2.7", {"speculative.n_max": 8}),
        ("--spec-type ngram-mod", "0.2.12", {"speculative.type": "COMMON_SPECULATIVE_TYPE_NGRAM_MOD"}),
        ("--spec-type ngram-mod,draft-mtp", NEWEST,
         {"speculative.types": ["COMMON_SPECULATIVE_TYPE_NONE", "COMMON_SPECULATIVE_TYPE_NGRAM_MOD",
                                "COMMON_SPECULATIVE_TYPE_DRAFT_MTP"]}),
        ("--slot-save-path /x", NEWEST, {"slot_save_path": "/x/"}),
        ("-v", NEWEST, {"verbosity": 2**31 - 1}),
        ("--grammar x", "0.2.14", {"sampling.grammar": "x"}),
        ("--grammar x", NEWEST,
         {"sampling.grammar.grammar": "x", "sampling.grammar.type": "COMMON_GRAMMAR_TYPE_USER"}),
        ("--reasoning-budget 9", "0.2.14", {"reasoning_budget": 9}),
        ("--reasoning-budget 9", NEWEST, {"sampling.reasoning_budget_tokens": 9}),
        ("--webui", "2026.5.9294", {"ui": True, "webui": True}),
        ("--no-webui", NEWEST, {"ui": False}),
        ("--numa numactl", NEWEST, {"numa": "GGML_NUMA_STRATEGY_NUMACTL"}),
        ("--prio 2 --cpu-strict 1", NEWEST,
         {"cpuparams.priority": "GGML_SCHED_PRIO_HIGH", "cpuparams.strict_cpu": True}),
    ],
)  # fmt: skip
def test_words_become_fields(words: str, version: str, expected: dict[str, JsonValue]) -> None:
    assert fields(words, version) == expected


def test_the_empty_word_of_numa_is_a_value() -> None:
    assert translate(["--numa", ""], {}, NEWEST).fields == {"numa": "GGML_NUMA_STRATEGY_DISTRIBUTE"}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"LLAMA_ARG_CTX_SIZE": "512"}, {"n_ctx": 512}),
        ({"LLAMA_ARG_ENDPOINT_METRICS": "1"}, {"endpoint_metrics": True}),
        ({"LLAMA_ARG_ENDPOINT_METRICS": "no"}, {}),
        ({"LLAMA_ARG_KV_UNIFIED": "off"}, {"kv_unified": False}),
        ({"LLAMA_ARG_NO_KV_UNIFIED": "anything"}, {"kv_unified": False}),
        ({"LLAMA_ARG_NO_KV_OFFLOAD": ""}, {"no_kv_offload": True}),
        ({"LLAMA_ARG_FLASH_ATTN": "auto"}, {"flash_attn_type": "LLAMA_FLASH_ATTN_TYPE_AUTO"}),
        ({"HOME": "/x", "HF_TOKEN": "x", "LLAMA_ARG_NOTHING": "1"}, {}),
    ],
)
def test_variables_become_fields(environ: dict[str, str], expected: dict[str, JsonValue]) -> None:
    assert translate([], environ, NEWEST).fields == expected


def test_a_variable_is_read_only_by_versions_that_know_it() -> None:
    assert translate([], {"LLAMA_ARG_TOP_P": "0.5"}, "2026.9.11063").fields == {}
    assert fields("", LLAMA_ARG_TOP_P="0.5")["sampling.top_p"] == 0.5


def test_flags_override_variables_and_each_field_says_who_set_it() -> None:
    made = translate(["-c", "1"], {"LLAMA_ARG_CTX_SIZE": "2", "LLAMA_ARG_BATCH": "3"}, NEWEST)
    assert made.fields == {"n_ctx": 1, "n_batch": 3}
    assert made.origins == {"n_ctx": "-c", "n_batch": "LLAMA_ARG_BATCH"}


def test_an_origin_is_the_word_as_it_was_written() -> None:
    assert translate(["--ctx_size", "1"], {}, NEWEST).origins == {"n_ctx": "--ctx_size"}


def test_every_field_has_an_origin() -> None:
    made = translate(
        ["--timeout", "1", "--temp", "1", "--repeat-last-n", "3", "--reasoning", "on", "-c", "0"], {}, NEWEST
    )
    assert made.fields.keys() == made.origins.keys()


def test_template_arguments_are_added_to_the_servers_own() -> None:
    words = ["--chat-template-kwargs", '{"a": [1]}', "--reasoning", "off", "--reasoning-effort", "high"]
    assert translate(words, {}, NEWEST).fields == {
        "enable_reasoning": 0,
        "default_template_kwargs": {
            "preserve_reasoning": "true",
            "a": "[1]",
            "enable_thinking": "false",
            "reasoning_effort": '"high"',
        },
    }
    undone = translate([*words, "--reasoning-effort", "default"], {}, NEWEST).fields["default_template_kwargs"]
    assert isinstance(undone, dict)
    assert "reasoning_effort" not in undone


def test_reasoning_is_kept_or_not() -> None:
    assert fields("--no-reasoning-preserve") == {
        "default_template_kwargs": {"preserve_reasoning": "false"},
        "preserve_reasoning_specified": True,
    }


def test_files_are_read(tmp_path: Path) -> None:
    template, keys = tmp_path / "t.jinja", tmp_path / "keys"
    template.write_text("{{ x }}", encoding="utf-8")
    keys.write_text("# ours\n\none\ntwo\n", encoding="utf-8")
    made = translate(["--chat-template-file", str(template), "--api-key-file", str(keys)], {}, NEWEST).fields
    assert made == {"chat_template": "{{ x }}", "api_keys": ["one", "two"]}


@pytest.mark.parametrize(
    ("words", "version", "argument", "reason", "suggestion"),
    [
        (["--ctx-sise", "1"], NEWEST, "--ctx-sise", "not a flag", "--ctx-size"),
        (["stray"], NEWEST, "stray", "no flag takes", None),
        (["--zzzzzz"], NEWEST, "--zzzzzz", "not a flag", None),
        (["-c=1"], NEWEST, "-c=1", "a word of its own", "-c"),
        (["-c"], NEWEST, "-c", "must follow", None),
        (["-c", "4k"], NEWEST, "-c", "not an integer", None),
        (["-c", "9999999999"], NEWEST, "-c", "out of range", None),
        (["-np", "0"], NEWEST, "-np", "not taken", None),
        (["-ngl", "most"], NEWEST, "-ngl", "auto, all", None),
        (["-ngl", "all"], OLDEST, "-ngl", "not an integer", None),
        (["-t", "0"], NEWEST, "-t", "below 1", None),
        (["--temp", "warm"], NEWEST, "--temp", "not a number", None),
        (["--temp", "inf"], NEWEST, "--temp", "finite", None),
        (["--rope-scale", "0"], NEWEST, "--rope-scale", "reciprocal", None),
        (["-ctk", "q2_k"], NEWEST, "-ctk", "q8_0", None),
        (["-sm", "tensor"], "0.2.14", "-sm", "not one of none, layer, row", None),
        (["-fit", "perhaps"], NEWEST, "-fit", "neither", None),
        (["-ts", ",".join("1" * 16)], NEWEST, "-ts", "more than the 15", None),
        (["-fitt", "1.5"], NEWEST, "-fitt", "not whole", None),
        (["--chat-template-kwargs", "[]"], NEWEST, "--chat-template-kwargs", "JSON object", None),
        (["--chat-template-kwargs", "{"], NEWEST, "--chat-template-kwargs", "not JSON", None),
        (["--chat-template-file", "/nowhere/x"], NEWEST, "--chat-template-file", "cannot be read", None),
        (["--host", ","], NEWEST, "--host", "at least one", None),
        (["--lora-scaled", "a.gguf"], NEWEST, "--lora-scaled", "PATH:SCALE", None),
        (["-hf", "a/b"], NEWEST, "-hf", "model file", None),
        (["--version"], NEWEST, "--version", "ends", None),
        (["--top-nsigma", "1"], NEWEST, "--top-nsigma", "no field", None),
        (["--draft-max", "1"], NEWEST, "--draft-max", "--spec-draft-n-max", None),
        (["--mmap"], NEWEST, "--mmap", "to 2026.9.10809; this is 2026.10.11549", None),
        (["--no-kv-unified"], "0.2.10", "--no-kv-unified", "from xllamacpp 0.2.11 on", None),
        (["--temperature", "1"], "0.2.7", "--temperature", "from xllamacpp 0.2.12 on", None),
        (["--verbose-prompt"], NEWEST, "--verbose-prompt", "up to xllamacpp 0.2.14", None),
    ],
)  # fmt: skip
def test_what_cannot_be_translated(
    words: list[str], version: str, argument: str, reason: str, suggestion: str | None
) -> None:
    with pytest.raises(FlagError) as caught:
        translate(words, {}, version)
    assert caught.value.argument == argument
    assert reason in caught.value.reason
    if suggestion:
        assert caught.value.suggestion == suggestion


def test_a_bad_variable_is_named() -> None:
    with pytest.raises(FlagError, match="LLAMA_ARG_CTX_SIZE"):
        translate([], {"LLAMA_ARG_CTX_SIZE": "big"}, NEWEST)


def test_a_variable_of_what_cannot_be_carried_out_is_named() -> None:
    with pytest.raises(FlagError) as caught:
        translate([], {"LLAMA_ARG_MODELS_MAX": "2"}, NEWEST)
    assert caught.value.argument == "LLAMA_ARG_MODELS_MAX"


@pytest.mark.parametrize(
    ("field", "version", "value", "words", "variable"),
    [
        ("n_ctx", NEWEST, 4096, ["-c", "4096"], ("LLAMA_ARG_CTX_SIZE", "4096")),
        ("n_gpu_layers", NEWEST, -2, ["-ngl", "all"], ("LLAMA_ARG_N_GPU_LAYERS", "all")),
        ("flash_attn_type", NEWEST, "LLAMA_FLASH_ATTN_TYPE_DISABLED", ["-fa", "off"], ("LLAMA_ARG_FLASH_ATTN", "off")),
        ("cache_type_k", NEWEST, "GGML_TYPE_Q8_0", ["-ctk", "q8_0"], ("LLAMA_ARG_CACHE_TYPE_K", "q8_0")),
        ("kv_unified", NEWEST, False, ["--no-kv-unified"], ("LLAMA_ARG_KV_UNIFIED", "off")),
        ("kv_unified", OLDEST, False, [], None),
        ("no_kv_offload", NEWEST, True, ["--no-kv-offload"], ("LLAMA_ARG_KV_OFFLOAD", "off")),
        ("no_kv_offload", NEWEST, False, ["--kv-offload"], ("LLAMA_ARG_KV_OFFLOAD", "on")),
        ("use_mmap", OLDEST, False, ["--no-mmap"], ("LLAMA_ARG_MMAP", "off")),
        ("load_mode", NEWEST, "LLAMA_LOAD_MODE_MMAP", ["-lm", "mmap"], ("LLAMA_ARG_LOAD_MODE", "mmap")),
        ("fit_params", NEWEST, False, ["-fit", "off"], ("LLAMA_ARG_FIT", "off")),
        ("fit_params_target", NEWEST, [2**20] * 16, ["-fitt", "1"], ("LLAMA_ARG_FIT_TARGET", "1")),
        ("moe_cache_size", NEWEST, 3 * 2**20, ["--moe-cache-mib", "3"], ("LLAMA_ARG_MOE_CACHE_MIB", "3")),
        ("moe_cache_size", NEWEST, 5, [], None),
        ("sampling.temp", NEWEST, 0.8, ["--temp", "0.8"], ("LLAMA_ARG_TEMPERATURE", "0.8")),
        ("sampling.temp", OLDEST, 0.8, ["--temp", "0.8"], None),
        ("sampling.dry_penalty_last_n", NEWEST, -1, [], None),
        ("timeout_read", NEWEST, 600, ["-to", "600"], ("LLAMA_ARG_TIMEOUT", "600")),
        ("api_keys", NEWEST, ["a", "b"], ["--api-key", "a,b"], ("LLAMA_API_KEY", "a,b")),
        ("swa_full", NEWEST, True, ["--swa-full"], ("LLAMA_ARG_SWA_FULL", "1")),
        ("swa_full", NEWEST, False, [], None),
        ("enable_reasoning", NEWEST, 0, ["-rea", "off"], ("LLAMA_ARG_REASONING", "off")),
        ("cpuparams.strict_cpu", NEWEST, True, ["--cpu-strict", "1"], None),
        ("n_ctx", NEWEST, None, [], None),
        ("n_ctx", NEWEST, True, [], None),
        ("cache_type_k", NEWEST, "GGML_TYPE_TQ1_0", [], None),
    ],
)  # fmt: skip
def test_a_field_becomes_words(
    field: str, version: str, value: JsonValue, words: list[str], variable: tuple[str, str] | None
) -> None:
    flag = flag_for(field, version)
    assert flag is not None
    assert render(flag, value) == words
    assert render_env(flag, value) == variable


@pytest.mark.parametrize(
    ("field", "version"),
    [("load_mode", OLDEST), ("use_mmap", NEWEST), ("nothing", NEWEST), ("sampling.user_sampling_config", NEWEST)],
)
def test_a_field_without_a_flag(field: str, version: str) -> None:
    assert flag_for(field, version) is None


def test_the_servers_own_defaults() -> None:
    assert flags.server_defaults(OLDEST) == {"port": 8080}
    assert flags.server_defaults("0.2.8") == {"n_parallel": -1, "port": 8080}
    assert flags.server_defaults(NEWEST) == {
        "n_parallel": -1,
        "port": 9931,
        "default_template_kwargs": {"preserve_reasoning": "true"},
    }


def test_the_defaults_are_not_changed_by_a_translation() -> None:
    fields("--reasoning on")
    assert flags.server_defaults(NEWEST)["default_template_kwargs"] == {"preserve_reasoning": "true"}


# ---- the table itself


@pytest.mark.parametrize("version", VERSIONS)
def test_no_spelling_and_no_variable_has_two_flags(version: str) -> None:
    here = [flag for flag in (f.at(version) for f in flags.load_flags()) if flag]
    words = [word for flag in here for word in flag.names + flag.negative]
    assert len(words) == len(set(words))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_flag_has_a_field_or_a_reason(version: str) -> None:
    for flag in filter(None, (f.at(version) for f in flags.load_flags())):
        assert (flag.unsupported is None) == isinstance(flag.field, str), flag.names


def test_bounds_are_stated_only_where_they_are_read() -> None:
    for flag in flags.load_flags():
        if flag.minimum is not None or flag.maximum is not None or flag.refuse:
            assert flag.type in ("int", "float", "numbers"), flag.names


# ---- there and back


def values_of(flag: Flag) -> st.SearchStrategy[JsonValue]:
    """Values of a flag's field that llama-server's words can give."""
    number = st.floats(
        min_value=max(flag.minimum or -1e6, flag.floor if flag.floor is not None else -1e6),
        max_value=flag.maximum or 1e6,
    )
    low = flag.minimum if flag.minimum is not None else -1 if flag.unsigned else -(2**20)
    whole = st.integers(int(low), int(flag.maximum or 2**20)).filter(lambda v: v not in flag.refuse)
    text = st.text(st.characters(codec="ascii", exclude_categories=("Cc", "Zs"), exclude_characters=",/"), min_size=1)
    members = list((flag.values or {}).values())
    known: dict[str, st.SearchStrategy[JsonValue]] = {
        "switch": st.just(flag.on),
        "bool": st.sampled_from(members or [True, False]),
        "onoff": st.booleans(),
        "int": whole.map(lambda v: v % 2**32 if flag.unsigned else v * flag.factor),
        "float": number,
        "reciprocal": st.integers(-8, 8).map(lambda power: 2.0**power),
        "enum": st.sampled_from(members or [None]),
        "enums": st.lists(st.sampled_from(members or [None]), min_size=1).map(lambda v: [*flag.prefix, *v]),
        "list": st.lists(text, min_size=1, max_size=4 if flag.separator else 1).map(list),
        "map": st.dictionaries(text, st.sampled_from(["1", "true", '"x"']), max_size=3).map(dict),
        "lora": st.lists(text, min_size=1).map(lambda paths: [{"path": path, "scale": 1.0} for path in paths]),
    }
    if flag.type == "numbers":
        return _numbers_of(flag)
    if flag.directory:
        return text.map(lambda name: f"/{name}/")
    return known.get(flag.type, text)


def _numbers_of(flag: Flag) -> st.SearchStrategy[JsonValue]:
    some = st.lists(st.integers(1, 2000), min_size=1, max_size=flag.most or 4)
    return some.map(lambda found: _filled(flag, found))


def _filled(flag: Flag, found: list[int]) -> JsonValue:
    rest = found[0] if flag.broadcast and len(found) == 1 else int(flag.fill)
    padded = found + [rest] * ((flag.length or 0) - len(found))
    return [n * flag.factor if flag.whole else float(n) for n in padded]


WRITABLE = [
    (version, flag)
    for version in VERSIONS
    for flag in filter(None, (f.at(version) for f in flags.load_flags()))
    if flag.unsupported is None and flag.inverse and flag.key is None
]


@given(st.data())
def test_what_is_written_is_read_back(data: st.DataObject) -> None:
    version, flag = data.draw(st.sampled_from(WRITABLE))
    value = data.draw(values_of(flag))
    words = render(flag, value)
    assert words, (flag.names, value)
    expected = value
    if flag.type == "map":
        assert isinstance(value, dict)
        expected = {**_defaults(flag, version), **value}
    assert translate(words, {}, version).fields[flag.field] == expected


@given(st.data())
def test_what_is_written_as_a_variable_is_read_back(data: st.DataObject) -> None:
    version, flag = data.draw(st.sampled_from([(v, f) for v, f in WRITABLE if f.env and f.type != "map"]))
    value = data.draw(values_of(flag))
    variable = render_env(flag, value)
    assert variable is not None, (flag.names, value)
    assert translate([], dict([variable]), version).fields[flag.field] == value


def _defaults(flag: Flag, version: str) -> dict[str, JsonValue]:
    held = flags.server_defaults(version).get(flag.field)
    return held if isinstance(held, dict) else {}

"""SGLang for real, on the CPU: releases from the oldest to the newest that engdiff launches."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest

from engdiff.engines.contract import LaunchPlan
from engdiff.engines.layers import same
from engdiff.engines.sglang.normalize import translated
from engdiff.references import EngineReference
from engdiff.schema.capture import Capture, Environment
from engdiff.schema.values import Known, Unknown, number, plain
from engdiff.sources.acquire import Wishes, order
from engdiff.sources.launch import launch
from tests.real.real_helpers import CaptureOf, diffed

pytestmark = pytest.mark.real

OLDEST, NEWEST = "0.4.6", "0.5.23"
BETWEEN = ("0.5.4", "0.5.12")
WORDS = ("--max-total-tokens", "16384", "--chunked-prefill-size", "1024")

OTHER_EACH_START = {"port", "nccl_port", "random_seed", "model_path", "tokenizer_path", "served_model_name"}
MADE_ON_REQUEST = {
    "enable_dp_attention",
    "_speculative_draft_quantization_explicitly_set",
}
"""Fields that the endpoint computes for its answer instead of reading them."""

NEVER_FILLED_IN = {"0.4.6": {"chunked_prefill_size"}}
"""Fields that the scheduler's account of this version holds as declared, whatever they are (``global_server_args_dict``
in managers/schedule_batch.py), and that replace the real ones in the answer."""


@pytest.mark.parametrize(
    "version", [OLDEST, *(pytest.param(version, marks=pytest.mark.matrix) for version in BETWEEN), NEWEST]
)
def test_every_setting_is_what_the_engines_own_endpoint_says(version: str, tmp_path: Path) -> None:
    answers: dict[str, Any] = {}

    def look(plan: LaunchPlan) -> None:
        base = urljoin(plan.ready_url, "/")
        body = {"text": "the engine", "sampling_params": {"max_new_tokens": 8, "temperature": 0}}
        ask = urllib.request.Request(f"{base}generate", json.dumps(body).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(ask) as answer:
            answers["generated"] = json.load(answer)
        with urllib.request.urlopen(f"{base}get_server_info") as info:
            answers["info"] = json.load(info)

    wishes = Wishes(model="tiny", arguments=WORDS)
    outcome = launch(order(EngineReference("sglang", version), wishes, lambda _: None), lambda _: None, look)
    assert outcome.error is None
    assert answers["generated"]["text"]
    info, made = answers["info"], outcome.capture
    assert info["version"] == version == plain(made.identity.version)
    differing = {name: (ours, theirs) for name, ours, theirs in _fields(made, info) if not _alike(ours, theirs)}
    assert differing == {}
    assert len(list(_fields(made, info))) > 100
    assert _settings_against(made, info) == {}
    _complete(made)


def _fields(made: Capture, info: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """Every field of ServerArgs on both sides; in a flat answer (0.4.6) those of the scheduler replace the others."""
    arguments, changed = made.native["server_args"], made.native.get("changed_by_scheduler") or {}
    assert isinstance(arguments, dict)
    assert isinstance(changed, dict)
    if "internal_states" not in info:
        arguments = {**arguments, **changed}
    names = (arguments.keys() & info.keys()) - OTHER_EACH_START - MADE_ON_REQUEST
    names -= NEVER_FILLED_IN.get(info["version"], set())
    return [
        (name, arguments[name], info[name])
        for name in sorted(names)
        if "redacted" not in f"{arguments[name]} {info[name]}"
    ]


def _alike(ours: Any, theirs: Any) -> bool:
    """Enumerations and classes are names on our side; the endpoint writes them as their values."""
    return same(ours, theirs) or json.dumps(ours, sort_keys=True) == json.dumps(theirs, sort_keys=True)


def _settings_against(made: Capture, info: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that say something else than the first scheduler's own account, where it has one of them."""
    states = info.get("internal_states")
    state = states[0] if isinstance(states, list) and states else info
    wrong = {}
    for key, setting in made.settings.items():
        native, final = setting.native, setting.final
        if native is None or native not in state or native in OTHER_EACH_START or isinstance(final, Unknown):
            continue
        theirs = translated(key, native, state[native], state)
        if theirs in (None, "auto") or key in KNOWN_DEEPER:
            continue
        if not _alike(final.value, theirs):
            wrong[key] = (final.value, theirs)
    return wrong


KNOWN_DEEPER = {
    "scheduler.max_num_seqs": "the scheduler's own limit, which the arguments do not hold",
    "model.dtype": "of the model runner; the arguments say what was asked for",
    "graphs.mode": "what was captured: nothing on a CPU, whatever the arguments plan",
    "kernels.attention_backend": "what was built, where the arguments name a back end that fell back",
}


def _complete(made: Capture) -> None:
    """What every release must give."""
    assert isinstance(made.identity.environment, Environment)
    assert made.notes[:-1] == made.identity.environment.notes, "the probe read everything"
    assert made.notes[-1].startswith("stand-ins were imported for sgl_kernel")
    settings = made.settings
    assert settings["kv.configured_tokens"].origin == "user"
    assert settings["scheduler.max_num_batched_tokens"].origin == "user"
    assert settings["scheduler.policy"].origin == "default"
    assert settings["scheduler.max_num_seqs"].origin == "derived"
    assert plain(settings["kernels.attention_backend"].final) == "torch_native"
    assert plain(settings["scheduler.async_scheduling"].final) is True
    assert number(settings["scheduler.new_token_ratio"].final) == pytest.approx(0.7)
    pool = made.instances[0].ranks[0].pools[0]
    product = 1.0
    for factor in pool.factors:
        product *= number(factor.value) or 0
    assert number(pool.bytes) == product
    assert number(pool.tokens) == 16384
    assert {term.name for term in made.instances[0].ranks[0].ledger} >= {"weights", "KV cache", "left free"}
    steps = {step for process in made.instances[0].processes for step in process.steps}
    assert steps == {"http", "tokenise", "schedule", "execute", "detokenise"}
    assert isinstance(made.runner.name, Known)


def test_two_versions_give_a_diff_of_the_whole_configuration(capture_of: CaptureOf) -> None:
    code, diff = diffed(capture_of(f"sglang@{OLDEST}", *WORDS), capture_of(f"sglang@{NEWEST}", *WORDS))
    assert code == 1
    assert diff.native_compared > 50
    keys = {finding.key for finding in diff.findings}
    assert "kv.cache_class" in keys
    assert "model.seed" not in keys, "it is drawn anew at each start"
    assert not any(finding.asked for finding in diff.findings)


def test_the_same_version_twice_gives_an_empty_diff(capture_of: CaptureOf) -> None:
    first, second = capture_of(f"sglang@{NEWEST}", *WORDS), capture_of(f"sglang@{NEWEST}", *WORDS, nth=2)
    code, diff = diffed(first, second)
    assert [finding.headline for finding in diff.findings] == []
    assert code == 0


def test_replicas_are_ranks_of_their_own(tmp_path: Path) -> None:
    wishes = Wishes(
        model="tiny", arguments=(*WORDS, "--dp-size", "2"), variables={"SGLANG_CPU_OMP_THREADS_BIND": "0|1"}
    )
    outcome = launch(order(EngineReference("sglang", NEWEST), wishes, lambda _: None), lambda _: None)
    assert outcome.error is None
    ranks = outcome.capture.instances[0].ranks
    assert [(rank.dp, rank.tp) for rank in ranks] == [(0, 0), (1, 0)]
    assert [number(rank.pools[0].tokens) for rank in ranks] == [16384, 16384]

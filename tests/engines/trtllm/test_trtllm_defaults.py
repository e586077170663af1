"""Static defaults tell who set a field; they never stand for what was resolved."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

import pytest
from pydantic import JsonValue

from engdiff.engines.layers import MISSING
from engdiff.engines.trtllm import defaults, http
from engdiff.engines.trtllm.normalize import KNOWLEDGE, NEWEST, who
from engdiff.knowledge.versions import holds
from engdiff.schema.capture import Capture
from engdiff.schema.values import Evidence, Known, Unknown, plain
from tests import factories as make
from tests.engines.conftest import Read
from tests.engines.trtllm import logs

ROWS: list[dict[str, Any]] = tomllib.loads(
    (files("engdiff.engines.trtllm") / "knowledge" / "defaults.toml").read_text(encoding="utf-8")
)["default"]

FRACTION = "kv_cache_config.free_gpu_memory_fraction"
POLICY = "scheduler_config.capacity_scheduler_policy"


@pytest.mark.parametrize(
    ("version", "path", "value"),
    [
        ("1.0.0", FRACTION, None),
        ("1.2.1", FRACTION, 0.9),
        ("1.3.0rc22", FRACTION, 0.9),
        ("1.0.0rc6", POLICY, "GUARANTEED_NO_EVICT"),
        ("1.4.0rc4", POLICY, "GUARANTEED_NO_EVICT"),
        ("1.2.1", "max_batch_size", 2048),
        ("1.2.1", "max_num_tokens", 8192),
        ("1.1.0rc3", "enable_chunked_prefill", False),
        ("1.2.0", "kv_cache_config.tokens_per_block", 32),
    ],
)
def test_defaults(version: str, path: str, value: JsonValue) -> None:
    assert defaults.at(version)[path].value == value


@pytest.mark.parametrize(
    ("version", "path"),
    [
        ("1.1.0", FRACTION),  # between two sources that say different things
        ("1.0.0", "kv_cache_config.tokens_per_block"),
        ("1.2.1", "scheduler_config.waiting_queue_policy"),
        ("0.20.0", POLICY),
        ("1.5.0", POLICY),
        ("main", POLICY),
    ],
)
def test_what_nobody_read_has_no_default(version: str, path: str) -> None:
    assert path not in defaults.at(version)


def test_no_version_has_no_defaults() -> None:
    assert defaults.at(None) == {}


def test_rows_are_sound() -> None:
    paths = {names.native for version in ("1.0.0", NEWEST) for names in KNOWLEDGE.names(version).values()}
    for row in ROWS:
        assert row["path"] in paths, row
        assert ("value" in row) != row.get("unset", False), row
        assert row["source"], row
    ends = [(r["path"], v) for r in ROWS for v in ("1.0.0", "1.1.0", "1.2.1", "1.3.0", "1.4.0") if _at(r, v)]
    assert len(ends) == len(set(ends)), "two rows hold for one version"


def _at(row: dict[str, Any], version: str) -> bool:
    return holds(version, row.get("since"), row.get("until"))


# --- origins of a log -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "version", "written", "declared"),
    [
        ("scheduler.max_num_seqs", 2048, "1.2.1", None, 2048),
        ("scheduler.max_num_seqs", 8, "1.2.1", 8, 2048),
        ("scheduler.max_num_seqs", None, "1.2.1", None, MISSING),
        ("scheduler.max_num_seqs", 8, None, None, MISSING),
        ("scheduler.max_num_seqs", 8, "0.20.0", None, MISSING),
        ("kv.prefix_caching", True, "1.2.1", None, True),
        ("kv.prefix_caching", False, "1.2.1", None, MISSING),  # a model's own defaults, or a worker, may have done it
        ("scheduler.async_scheduling", True, "1.2.1", None, True),
        ("graphs.mode", "decode", "1.2.1", None, "decode"),
        ("model.max_model_len", None, "1.2.1", None, None),
        ("kv.offload_bytes", None, "1.0.0", None, None),
        ("model.path", "m", "1.2.1", None, MISSING),
    ],
)
def test_who_wrote_it(key: str, value: JsonValue, version: str | None, written: JsonValue, declared: object) -> None:
    line = Evidence(source="log", where="max_batch_size=8", line=7)
    configured, default = who(key, Known(value=value, evidence=line), version)
    assert (plain(configured), default) == (written, declared)
    if configured is not None:
        assert configured.basis == "engine rule"
        assert configured.evidence
        assert (configured.evidence.source, configured.evidence.line) == ("rule", 7)
        assert configured.evidence.where.startswith(defaults.LABEL)


def test_origins_of_a_log(read: Read) -> None:
    settings = read("\n".join(logs.ranks())).settings
    assert {key: settings[key].origin for key in ORIGINS} == ORIGINS


ORIGINS = {
    "kv.gpu_memory_utilization": "user",
    "scheduler.max_num_seqs": "user",
    "parallel.tp": "user",
    "parallel.pp": "default",
    "scheduler.capacity_policy": "default",
    "scheduler.chunked_prefill": "default",
    "kv.prefix_caching": "default",
    "kv.dtype": None,
    "graphs.max_capture_size": None,
}


def test_without_a_version_nobody_is_said_to_have_written_it(read: Read) -> None:
    lines = [line for line in logs.ranks() if "version" not in line]
    settings = read("\n".join(lines)).settings
    assert {settings[key].origin for key in ORIGINS} == {None}
    assert "not known" in (settings["scheduler.max_num_seqs"].because or "")


def test_a_default_is_never_shown_as_resolved(read: Read) -> None:
    lines = [line for line in logs.ranks() if "LLM Args" not in line and not line.startswith(" model=")]
    capture = read("\n".join(lines))
    assert plain(capture.identity.version) == "1.3.0rc7"
    assert "scheduler.max_num_batched_tokens" not in capture.settings
    assert all(isinstance(setting.resolved, Unknown) for setting in capture.settings.values())


def test_origins_of_a_server() -> None:
    def origins(version: str) -> dict[str, Any]:
        answers = {
            "version": f'{{"version": "{version}"}}',
            "models": '{"data": [{"id": "m", "owned_by": "tensorrt_llm"}]}',
            "prometheus": 'trtllm_kv_cache_config_info{free_gpu_memory_fraction="0.8",enable_block_reuse="True"} 1.0\n'
            "trtllm_max_batch_size_static 2048.0\n",
        }
        settings = http.capture(answers, _base()).settings
        return {key: setting.origin for key, setting in settings.items()}

    assert origins("1.3.0rc22") == {
        "kv.gpu_memory_utilization": "user",
        "kv.prefix_caching": "default",
        "scheduler.max_num_seqs": "default",
    }
    assert set(origins("9.9.9").values()) == {None}


def _base() -> Capture:
    return make.vllm()

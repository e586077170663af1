"""What llama-server's endpoints say, at several builds, as a router, and when somebody else answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engdiff.engines.llamacpp import http
from engdiff.schema.capture import Capture
from engdiff.schema.values import Unknown, plain
from engdiff.sources.base import read_capture

PROPS = {
    "default_generation_settings": {
        "n_ctx": 65536,
        "params": {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "repeat_penalty": 1.0},
    },
    "total_slots": 4,
    "model_alias": "m",
    "model_path": "/models/m.gguf",
    "model_ftype": "Q4_K - Medium",
    "chat_template": "{{ a long text }}",
    "build_info": "b10229-25eec6f",
    "is_sleeping": False,
}
MODELS = {
    "object": "list",
    "data": [
        {
            "id": "m.gguf",
            "owned_by": "llamacpp",
            "meta": {"n_ctx": 65536, "n_ctx_train": 262144, "n_params": 35507, "size": 20197, "ftype": "Q4_K"},
        }
    ],
}
METRICS = """\
# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 1234
llamacpp:requests_processing 2
llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="0"} 7
llamacpp:predicted_tokens_seconds nan
go_goroutines 12
"""
SLOTS = [
    {"id": 0, "n_ctx": 65536, "is_processing": True, "prompt": "what a user wrote"},
    {"id": 1, "n_ctx": 65536, "is_processing": False},
]
ROUTER = {
    "role": "router",
    "max_instances": 4,
    "model_path": "none",
    "default_generation_settings": {"params": {}, "n_ctx": 0},
    "build_info": "b11063-abcdef1",
}
ROUTED = {
    "data": [
        {"id": "a", "owned_by": "llamacpp", "status": {"value": "loaded"}, "meta": {"n_ctx": 4096}},
        {"id": "b", "owned_by": "llamacpp", "status": {"value": "unloaded"}},
    ]
}


def read(**answers: Any) -> Capture:
    bodies = {name: body if isinstance(body, str) else json.dumps(body) for name, body in answers.items()}
    capture = http.capture(bodies, read_capture("llamacpp", "attach", "the server does not state it over HTTP"))
    return Capture.model_validate(capture.model_dump(mode="json"))


def effective(capture: Capture) -> dict[str, object]:
    return {key: plain(setting.effective) for key, setting in capture.settings.items()}


def test_a_server() -> None:
    capture = read(props=PROPS, models=MODELS, metrics=METRICS, slots=SLOTS)
    assert plain(capture.identity.version) == "b10229"
    assert plain(capture.identity.commit) == "25eec6f"
    assert capture.launch.model == "/models/m.gguf"
    assert effective(capture) == {
        "model.path": "/models/m.gguf",
        "model.max_model_len": 65536,
        "scheduler.max_num_seqs": 4,
        "model.quantization": "Q4_K - Medium",
        "sampling.temperature": 0.8,
        "sampling.top_k": 40,
        "sampling.top_p": 0.95,
        "sampling.min_p": 0.05,
        "sampling.repeat_penalty": 1.0,
    }
    setting = capture.settings["model.max_model_len"].effective
    assert setting.evidence.where == "/props default_generation_settings.n_ctx"  # type: ignore[union-attr]
    assert {name: plain(value) for name, value in capture.run_summary.items()} == {
        "llamacpp:prompt_tokens_total": 1234,
        "llamacpp:requests_processing": 2,
        "llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position=0}": 7,
        "llamacpp:predicted_tokens_seconds": None,
        "slots processing": 1,
    }
    assert "chat_template" not in json.dumps(capture.native)
    assert "a user wrote" not in json.dumps(capture.native)
    assert capture.native["models"][0]["meta"]["n_ctx_train"] == 262144  # type: ignore[index,call-overload]


def test_the_card_of_the_model_completes_an_old_server() -> None:
    capture = read(props={"total_slots": 1, "default_generation_settings": {"temperature": 0.8}}, models=MODELS)
    assert effective(capture) == {
        "model.max_model_len": 65536,
        "scheduler.max_num_seqs": 1,
        "model.quantization": "Q4_K",
        "sampling.temperature": 0.8,
    }
    assert capture.launch.model == "m.gguf"
    assert isinstance(capture.identity.version, Unknown)


def test_a_build_that_does_not_know_itself() -> None:
    capture = read(props=PROPS | {"build_info": "b0-unknown"})
    assert isinstance(capture.identity.version, Unknown)
    assert isinstance(capture.identity.commit, Unknown)


def test_a_distribution_names_itself_instead_of_a_commit() -> None:
    capture = read(props=PROPS | {"build_info": "b8681-Debian"})
    assert plain(capture.identity.version) == "b8681"
    assert isinstance(capture.identity.commit, Unknown)


def test_the_zero_of_a_router_is_no_context() -> None:
    capture = read(props=ROUTER, models=ROUTED)
    assert capture.settings == {}
    assert capture.launch.model is None
    assert plain(capture.identity.version) == "b11063"
    assert "a router of 2 models" in capture.notes[0]
    assert "loaded are a" in capture.notes[0]


def test_a_model_that_sleeps_is_said_to() -> None:
    assert "the model sleeps" in " ".join(read(props=PROPS | {"is_sleeping": True}).notes)


@pytest.mark.parametrize(
    ("answers", "known"),
    [
        ({"/v1/models": json.dumps(MODELS)}, True),
        ({"/props": json.dumps(PROPS)}, True),
        ({"/props": json.dumps(ROUTER)}, True),
        ({"/v1/models": json.dumps(ROUTED)}, True),
        ({"/v1/models": '{"object":"list","data":[{"id":"qwen3","object":"model","owned_by":"library"}]}'}, False),
        ({"/v1/models": '{"data":[{"id":"x","owned_by":"vllm"}]}'}, False),
        ({"/v1/models": '{"data":[{"id":"x","owned_by":"llama-swap"}]}'}, False),
        ({"/props": "<html>default_generation_settings total_slots</html>"}, False),
        ({"/v1/models": "[]", "/props": "null"}, False),
        ({}, False),
    ],
)
def test_whose_answers_they_are(answers: dict[str, str], known: bool) -> None:
    """Ollama (``library``) and llama-swap are other servers, whatever runs below them."""
    assert http.recognises(answers) is known


def test_only_paths_that_change_nothing_are_read_unasked() -> None:
    """``/metrics`` begins the window of the averages anew, ``/slots`` wakes a sleeping model; none names a model."""
    unasked = {*http.IDENTIFY, *http.ENDPOINTS.values()}
    assert unasked == {"/props", "/v1/models", "/health"}
    assert set(http.DRAINING.values()) == {"/metrics", "/slots"}


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*PROPS, "data", "meta", "id"]), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["props", "models", "metrics", "slots", "health"]), anything))
def test_any_answer_fuzz(answers: dict[str, Any]) -> None:
    bodies = {name: json.dumps(value) for name, value in answers.items()}
    http.recognises({f"/{name}": body for name, body in bodies.items()} | {"/v1/models": bodies.get("models", "")})
    read(**bodies)

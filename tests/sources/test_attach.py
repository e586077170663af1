"""A running server is recognised and read; what a reading would change is left alone; a hostile one ends clearly."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from engdiff import errors
from engdiff.fetch import Access
from engdiff.schema.capture import Capture
from engdiff.schema.values import number, plain
from engdiff.sources.attach import AttachWishes, attach

Bodies = Mapping[str, str]


@contextmanager
def serving(bodies: Bodies) -> Iterator[tuple[str, list[str]]]:
    """A server with these answers; gives its URL and the list of what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = bodies.get(self.path)
            self.send_response(404 if body is None else 200)
            data = (body or "{}").encode()
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def models(owner: str, **facts: object) -> str:
    return json.dumps({"object": "list", "data": [{"id": "m/x", "object": "model", "owned_by": owner, **facts}]})


VLLM = {
    "/v1/models": models("vllm", max_model_len=8192),
    "/version": '{"version": "0.28.0"}',
    "/metrics": 'vllm:cache_config_info{block_size="16",num_gpu_blocks="1000",engine="0"} 1.0\n'
    'vllm:num_requests_running{engine="0",model_name="m/x"} 3.0\n',
}
SGLANG = {
    "/v1/models": models("sglang"),
    "/get_model_info": '{"model_path": "m/x"}',
    "/get_server_info": json.dumps({"version": "0.5.3", "max_total_num_tokens": 4096, "api_key": "sesame-42"}),
}
TRTLLM = {"/v1/models": models("tensorrt_llm"), "/version": '{"version": "1.0.0"}', "/metrics": "[]"}
LLAMACPP = {
    "/v1/models": models("llamacpp"),
    "/props": json.dumps({"total_slots": 2, "default_generation_settings": {"n_ctx": 512}, "model_path": "/m/x.gguf"}),
    "/metrics": "llamacpp:requests_processing 1\n",
}
ENGINES = {"vllm": VLLM, "sglang": SGLANG, "trtllm": TRTLLM, "llamacpp": LLAMACPP}


def read(url: str, **wishes: object) -> Capture:
    return attach(url, AttachWishes(access=Access(limit_seconds=2), **wishes), lambda _: None)  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
def test_each_engine_is_recognised(engine: str, ending: str) -> None:
    with serving(ENGINES[engine]) as (url, asked):
        made = read(url + ending)
    assert made.identity.engine == engine
    assert made.identity.source == "attach"
    assert "/health" not in asked or engine != "sglang", "SGLang runs a request for it"
    assert "sesame" not in made.model_dump_json()


def test_what_is_stated_is_read() -> None:
    with serving(VLLM) as (url, _):
        made = read(url)
    assert plain(made.identity.version) == "0.28.0"
    assert number(made.settings["model.max_model_len"].final) == 8192
    (pool,) = made.instances[0].ranks[0].pools
    assert number(pool.blocks) == 1000
    assert made.run_summary


@pytest.mark.parametrize("engine", ["trtllm", "llamacpp"])
def test_what_reading_changes_is_read_only_when_asked_for(engine: str) -> None:
    with serving(ENGINES[engine]) as (url, asked):
        made = read(url)
        assert "/metrics" not in asked
        assert any("--drain" in note for note in made.notes)
        read(url, drain=True)
        assert "/metrics" in asked


def test_only_reading_paths_are_asked_for() -> None:
    with serving({}) as (url, asked), pytest.raises(errors.ServerForeign):
        read(url)
    assert not any(word in path for path in asked for word in ("flush", "generate", "reset", "sleep", "metrics"))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "body",
    [
        "",
        "null",
        "[]",
        "{",
        '{"data": 1}',
        "[" * 5000,
        '{"version": {"a": []}}',
        "\x00\x01",
        '{"data": [{"id": 1e999}]}',
    ],
)
def test_bodies_of_the_wrong_shape_give_less_and_never_a_defect(engine: str, body: str) -> None:
    bodies = dict.fromkeys(ENGINES[engine], body)
    with serving(bodies) as (url, _):
        made = read(url, engine=engine)
    assert made.identity.engine == engine


def test_another_server_is_told_from_an_engine() -> None:
    with serving({"/v1/models": models("openai"), "/": "<html>"}) as (url, _):
        with pytest.raises(errors.ServerForeign) as caught:
            read(url)
        assert "engdiff capture ENGINE --attach URL" in caught.value.advice

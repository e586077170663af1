"""Command lines of docker and podman: exact, for every engine, device and kind of model."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from engdiff import engines
from engdiff.engines.contract import Image, LaunchPlan, LaunchRequest
from engdiff.environments import container
from engdiff.environments.container import ContainerRun, Tool, command, hugging_face_cache, removal
from engdiff.environments.container_failures import last_lines, trouble
from engdiff.machine import Gpu, Machine, look
from engdiff.redact import REDACTED, redact_words

DOCKER, PODMAN = Tool("docker", "docker"), Tool("podman", "/usr/bin/podman")
ON_CPU = replace(look(), arch="x86_64", gpus=(), gpus_unknown_because="none")
ON_GPU = replace(ON_CPU, gpus=(Gpu("NVIDIA H200", 1, "9.0", "570"),))
MODEL = "org/model"
SHELL = {"HOME": "/nowhere", "XDG_CACHE_HOME": "/nowhere/.cache"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "run"
    made.mkdir()
    return made


def planned(
    name: str, image: Image, folder: Path, model: str = MODEL, words: Sequence[str] = (), shell: dict[str, str] = SHELL
) -> tuple[LaunchRequest, LaunchPlan]:
    request = LaunchRequest(
        version=image.version or "1",
        distribution=image.build.distribution,
        device=image.build.device,
        interpreter=image.interpreter or Path(),
        model=model,
        arguments=tuple(words),
        variables=shell,
        folder=folder,
        port=4321,
        host="0.0.0.0",  # noqa: S104
        image=image.reference,
    )
    return request, engines.get(name).plan(request)


def run_of(
    name: str,
    image: Image,
    folder: Path,
    model: str = MODEL,
    words: Sequence[str] = (),
    shell: dict[str, str] = SHELL,
) -> ContainerRun:
    request, plan = planned(name, image, folder, model, words, shell)
    added = {name: plan.environ[name] for name in plan.added if name in plan.environ}
    return ContainerRun(
        image=image.reference,
        argv=plan.argv,
        port=request.port,
        model=model,
        words=request.arguments,
        added=added,
        passed={n: value for n, value in plan.read_variables.items() if n not in added},
        uses_gpu=image.build.device == "cuda",
        folder=folder if plan.probe_files else None,
        output=plan.probe_output,
        keeps_entrypoint=image.keeps_entrypoint,
        options=image.options,
        name="engdiff-0",
    )


def shown(run: ContainerRun, folder: Path, tool: Tool = DOCKER, environ: dict[str, str] = SHELL) -> str:
    """With the folder as F."""
    return shlex.join(command(run, tool, environ)).replace(str(folder), "F")


START = "run --rm --init --name engdiff-0"
PORT = "-p 127.0.0.1:4321:4321"
PROBE = "-v F:F:ro -v F/probe:F/probe"
OUT = "-e ENGDIFF_PROBE_OUT=F/probe"
AT = "--host 0.0.0.0 --port 4321"
CPU = "--security-opt seccomp=unconfined --cap-add SYS_NICE"

GOLDEN = {
    ("vllm", "0.33.0", "gpu"): (
        f"docker {START} --gpus all --shm-size=32g {PORT} {PROBE} {OUT} -e PYTHONPATH=F/plugin "
        f"-e VLLM_NO_USAGE_STATS=1 --entrypoint python3 vllm/vllm-openai:v0.33.0 -m vllm.entrypoints.openai.api_server "
        f"--model org/model --max-num-seqs 8 {AT}"
    ),
    ("vllm", "0.33.0", "cpu"): (
        f"docker {START} --shm-size=32g {CPU} {PORT} {PROBE} {OUT} -e PYTHONPATH=F/plugin -e VLLM_NO_USAGE_STATS=1 "
        "--entrypoint python3 public.ecr.aws/q9t5s3a7/vllm-cpu-release-repo:v0.33.0 "
        f"-m vllm.entrypoints.openai.api_server --model org/model --max-num-seqs 8 {AT}"
    ),
    ("sglang", "0.5.23", "gpu"): (
        f"docker {START} --gpus all --shm-size=32g {PORT} {PROBE} {OUT} -e PYTHONPATH=F/hook --entrypoint python3 "
        f"lmsysorg/sglang:v0.5.23 -m sglang.launch_server --model-path org/model --max-num-seqs 8 {AT}"
    ),
    ("trtllm", "1.2.1", "gpu"): (
        f"docker {START} --gpus all --shm-size=32g --ulimit memlock=-1 --ulimit stack=67108864 {PORT} {PROBE} {OUT} "
        "-e PYTHONPATH=F/hook -e TLLM_LOG_LEVEL=INFO -e TRTLLM_NO_USAGE_STATS=1 "
        "nvcr.io/nvidia/tensorrt-llm/release:1.2.1 "
        f"python3 -m tensorrt_llm.commands.serve serve org/model --max-num-seqs 8 {AT}"
    ),
    ("llamacpp", "2026.4.8929", "gpu"): (
        f"docker {START} --gpus all --shm-size=32g {PORT} --entrypoint /app/llama-server "
        f"ghcr.io/ggml-org/llama.cpp:server-cuda-b8929 -m org/model --max-num-seqs 8 -lv 4 --metrics {AT}"
    ),
    ("llamacpp", "2026.4.8929", "cpu"): (
        f"docker {START} --shm-size=32g {PORT} --entrypoint /app/llama-server "
        f"ghcr.io/ggml-org/llama.cpp:server-b8929 -m org/model --max-num-seqs 8 -lv 4 --metrics {AT}"
    ),
}


@pytest.mark.parametrize(("name", "version", "device"), GOLDEN, ids="-".join)
def test_the_engines_own_image(name: str, version: str, device: str, folder: Path) -> None:
    machine = ON_GPU if device == "gpu" else ON_CPU
    image = engines.get(name).image(version, None, machine, None)
    run = run_of(name, image, folder, words=("--max-num-seqs", "8"))
    assert shown(run, folder) == GOLDEN[name, version, device]


def run(**changes: object) -> ContainerRun:
    made = ContainerRun(
        image="maker/image:1",
        argv=("python3", "-m", "engine"),
        port=4321,
        model=MODEL,
        words=(),
        added={},
        passed={},
        uses_gpu=True,
        name="engdiff-0",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tool", "image", "visible", "words"),
    [
        (DOCKER, "maker/image:1", None, "--gpus all"),
        (DOCKER, "maker/image:1", "0,1", "--gpus '\"device=0,1\"'"),
        (DOCKER, "maker/image:1", "GPU-8f2e", "--gpus '\"device=GPU-8f2e\"'"),
        (DOCKER, "maker/image:1", "", ""),
        (DOCKER, "maker/image:1", "-1", ""),
        (PODMAN, "maker/image:1", None, "--device nvidia.com/gpu=all"),
        (PODMAN, "maker/image:1", "0, 2", "--device nvidia.com/gpu=0 --device nvidia.com/gpu=2"),
        (DOCKER, "rocm/vllm:rocm6.4.1", None, "--device /dev/kfd --device /dev/dri --group-add video"),
        (PODMAN, "maker/vllm-rocm:1", None, "--device /dev/kfd --device /dev/dri --group-add keep-groups"),
    ],
)
def test_which_devices(folder: Path, tool: Tool, image: str, visible: str | None, words: str) -> None:
    passed = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    made = shown(run(image=image, passed=passed), folder, tool)
    between = made.partition("--name engdiff-0")[2].partition("--shm-size")[0].strip()
    assert between == words
    assert "CUDA_VISIBLE_DEVICES" not in made  # counted anew in there
    assert ("label=disable" in made) == (tool is PODMAN)


def test_no_device_for_an_image_of_a_cpu(folder: Path) -> None:
    made = shown(run(uses_gpu=False, passed={"CUDA_VISIBLE_DEVICES": "0"}), folder)
    assert "--gpus" not in made
    assert "-e CUDA_VISIBLE_DEVICES=0" in made


def test_amd_gpus_are_all_there_and_counted_as_before(folder: Path) -> None:
    made = shown(run(image="rocm/vllm:1", passed={"HIP_VISIBLE_DEVICES": "1"}), folder)
    assert "-e HIP_VISIBLE_DEVICES=1" in made


SECRET = {"HF_TOKEN": "hf_abcdefghijklmnopqrst", "VLLM_FOO": "https://me:pass@host/x", "VLLM_BAR": "1", "HF_OFF": "0"}


def test_no_secret_stands_on_the_command_line(folder: Path) -> None:
    shell = {**SHELL, "HF_OFF": "0"}
    words = command(run(passed=SECRET, argv=("python3", "--api-key", "sesame-42")), DOCKER, shell)
    given = [words[i + 1] for i, word in enumerate(words) if word == "-e"]
    assert given == ["HF_OFF", "HF_TOKEN", "VLLM_BAR=1", "VLLM_FOO"]
    assert not any(secret in word for word in given for secret in ("hf_abc", "pass@"))
    assert redact_words(words)[-2:] == ("--api-key", REDACTED)


def test_a_model_is_mounted_where_it_is(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    made = shown(run(model=str(model)), folder)
    assert f"-v {model}:{model}:ro" in made
    assert "HF_HOME" not in made


def test_a_file_brings_its_folder_and_links_where_they_lead(folder: Path, tmp_path: Path) -> None:
    blobs, models, snapshot = tmp_path / "blobs", tmp_path / "models", tmp_path / "snapshots" / "1"
    for one in (blobs, models, snapshot):
        one.mkdir(parents=True)
    (blobs / "abc").write_text("x")
    (models / "m-00001-of-00002.gguf").write_text("x")
    (models / "linked.gguf").symlink_to(blobs / "abc")
    (snapshot / "config.json").symlink_to(blobs / "abc")
    (snapshot / "inside.json").symlink_to("config.json")
    for model, mounted in (
        (models / "m-00001-of-00002.gguf", [models]),
        (models / "linked.gguf", [models, blobs]),
        (snapshot, [snapshot, blobs]),
    ):
        words = command(run(model=str(model)), DOCKER, SHELL)
        given = [words[i + 1] for i, word in enumerate(words) if word == "-v"]
        assert given == [f"{path}:{path}:ro" for path in mounted]


def test_a_folder_of_the_system_is_never_hidden(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(container, "_SYSTEM", frozenset({tmp_path}))
    (tmp_path / "m.gguf").write_text("x")
    made = shown(run(model=str(tmp_path / "m.gguf"), words=("--download-dir", str(tmp_path))), folder)
    assert f"-v {tmp_path}/m.gguf:{tmp_path}/m.gguf:ro" in made
    assert made.count("-v ") == 1


def test_files_that_the_words_name(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "extra.yaml").write_text("x: 1")
    (tmp_path / "loras").mkdir()
    (tmp_path / "8").write_text("a value that happens to be a file's name")
    words = (
        "--config",
        "extra.yaml",
        "--lora-modules",
        f"sql={tmp_path}/loras",
        "--max-num-seqs",
        "8",
        "--x",
        "no.yaml",
    )
    made = shown(run(words=words), folder)
    extra, loras = tmp_path / "extra.yaml", tmp_path / "loras"
    assert f"-v {extra}:{extra}:ro -v {loras}:{loras} -w {tmp_path} " in made
    assert made.count("-v ") == 2
    assert "-w" not in shown(run(words=(f"--config={extra}",)), folder)


def test_a_path_with_a_colon(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "a:b"
    model.mkdir()
    assert f"--mount type=bind,source={model},target={model},readonly" in shown(run(model=str(model)), folder)


def test_the_users_cache_of_models(folder: Path, tmp_path: Path) -> None:
    home, hub, cache = tmp_path / "hf", tmp_path / "hub", tmp_path / "cache"
    for one in (home, hub, cache / "huggingface"):
        one.mkdir(parents=True)
    default = {"XDG_CACHE_HOME": str(cache)}
    assert hugging_face_cache({}, default) == {"HF_HOME": f"{cache}/huggingface"}
    assert hugging_face_cache({}, {"XDG_CACHE_HOME": "/none"}) == {}
    assert hugging_face_cache({"HF_HOME": str(home)}, default) == {"HF_HOME": str(home)}
    assert hugging_face_cache({"HF_HUB_CACHE": str(hub)}, {"HF_HOME": "/none"}) == {"HF_HUB_CACHE": str(hub)}
    made = shown(run(), folder, environ={**SHELL, "HF_HOME": str(home)})
    assert f"-v {home}:{home} -e HF_HOME " in made  # by its name: the shell has this very value
    assert f"-v {cache}/huggingface:{cache}/huggingface -e HF_HOME={cache}/huggingface " in shown(
        run(), folder, environ=default
    )


def test_only_the_probes_output_can_be_written(folder: Path) -> None:
    """What root writes in a container lies in a folder of the user, who can remove it."""
    (folder / "probe").mkdir()
    mounts = shown(run(folder=folder, output=folder / "probe"), folder)
    assert PROBE in mounts


def test_names_differ_and_are_removed(folder: Path) -> None:
    made = replace(run(), name="engdiff-1")
    assert removal(made, PODMAN) == ("/usr/bin/podman", "rm", "--force", "--volumes", "engdiff-1")
    first, second = (ContainerRun("i", ("x",), 1, "m", (), {}, {}, False).name for _ in range(2))
    assert first != second
    assert first.startswith("engdiff-")


@pytest.mark.parametrize(
    ("names", "says", "kind"),
    [
        (("docker", "podman"), "Docker version 28.2.2", "docker"),
        (("podman",), "podman version 5.0", "podman"),
        (("docker",), "podman version 5.0", "podman"),
        ((), "", None),
    ],
)
def test_which_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], says: str, kind: str | None
) -> None:
    for name in names:
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{says}'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = container.find_tool()
    assert (found.kind if found else None) == kind
    assert found is None or found.program == str(tmp_path / names[0])


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
         "docker's daemon does not run"),
        ("permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
         "may not talk to docker's daemon"),
        ('docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]]',
         "cannot give a GPU"),
        ("Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all", "cannot give a GPU"),
        ("Bind for 127.0.0.1:8000 failed: port is already allocated", "port was taken"),
        ("Error response from daemon: manifest for vllm/x:v9 not found: manifest unknown", "no such image"),
        ("Error: initializing source docker://ghcr.io/x: reading manifest: denied: denied", "no such image"),
        ("pull access denied for x, repository does not exist or may require 'docker login'", "no such image"),
        ("toomanyrequests: You have reached your pull rate limit", "no more pulls"),
        ("dial tcp: lookup registry-1.docker.io: no such host", "cannot be reached"),
        ("write /var/lib/docker/tmp/x: no space left on device", "no room"),
        ('exec: "python3": executable file not found in $PATH: unknown', "not in the image"),
        ("no matching manifest for linux/arm64/v8 in the manifest list entries", "kind of CPU"),
    ],
)  # fmt: skip
def test_what_their_words_mean(said: str, problem: str) -> None:
    found = trouble(said, "docker")
    assert found is not None
    assert problem in found.problem
    assert found.advice
    assert "{" not in found.problem + found.advice


def test_other_words_mean_nothing() -> None:
    assert trouble("Traceback: ValueError", "docker") is None
    assert last_lines("a\n\n b\nRun 'docker run --help' for more information\n") == ("a", "b")


@pytest.mark.parametrize(
    ("named", "keeps"),
    [(None, True), ("mirror.example/tensorrt-llm/release:1.2.1", True), ("mine/trtllm-serve:7", False)],
)
def test_only_what_is_known_to_run_the_words_after_it_is_kept(named: str | None, keeps: bool) -> None:
    assert engines.get("trtllm").image("1.2.1", named, ON_GPU, None).keeps_entrypoint is keeps


# --- which image ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("engine", "version", "machine", "wanted", "reference"),
    [
        ("vllm", "0.12.0.post2", ON_CPU, None, "public.ecr.aws/q9t5s3a7/vllm-cpu-release-repo:v0.12.0"),
        ("vllm", "0.33.0", replace(ON_CPU, arch="aarch64"), None,
         "public.ecr.aws/q9t5s3a7/vllm-arm64-cpu-release-repo:v0.33.0"),
        ("vllm", "0.33.0", ON_CPU, "cuda", "vllm/vllm-openai:v0.33.0"),
        ("sglang", "0.4.6.post1", ON_GPU, None, "lmsysorg/sglang:v0.4.6.post1-cu124"),
        ("sglang", "0.4.7.post1", ON_GPU, None, "lmsysorg/sglang:v0.4.7.post1-cu124"),
        ("sglang", "0.4.10.post2", ON_GPU, None, "lmsysorg/sglang:v0.4.10.post2-cu126"),
        ("sglang", "0.5.6.post1", ON_GPU, None, "lmsysorg/sglang:v0.5.6.post1"),
        ("sglang", "0.5.23", ON_CPU, None, "lmsysorg/sglang:v0.5.23-xeon"),
        ("trtllm", "1.3.0rc22", ON_CPU, None, "nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc22"),
        ("llamacpp", "2026.4.8672.1", ON_CPU, None, "ghcr.io/ggml-org/llama.cpp:server-b8672"),
    ],
)  # fmt: skip
def test_the_image_of_a_version(
    engine: str, version: str, machine: Machine, wanted: str | None, reference: str
) -> None:
    found = engines.get(engine).image(version, None, machine, wanted)
    assert found.reference == reference
    assert engines.get(engine).image("1", found.reference, machine, None).version in (version, found.version)


@pytest.mark.parametrize(
    ("engine", "version", "machine", "wanted", "said"),
    [
        ("sglang", "0.4.6", ON_CPU, None, "no image for a CPU"),
        ("llamacpp", "0.2.14", ON_CPU, None, "does not tell its build"),
        ("trtllm", "1.2.1", ON_CPU, "cpu", "no build for `cpu`"),
        ("vllm", "0.33.0", ON_CPU, "tpu", "no build for `tpu`"),
        ("vllm", "0.33.0", replace(ON_CPU, arch="riscv64"), None, "no CPU image for riscv64"),
    ],
)
def test_no_image(engine: str, version: str, machine: Machine, wanted: str | None, said: str) -> None:
    from engdiff.errors import UsageError

    with pytest.raises(UsageError, match=said) as raised:
        engines.get(engine).image(version, None, machine, wanted)
    assert raised.value.advice


@pytest.mark.parametrize(
    ("engine", "named", "machine", "wanted", "device"),
    [
        ("vllm", "vllm/vllm-openai-cpu:v0.23.0", ON_GPU, None, "cpu"),
        ("vllm", "vllm/vllm-openai:v0.23.0", ON_GPU, None, "cuda"),
        ("vllm", "vllm/vllm-openai:v0.23.0", ON_CPU, None, "cpu"),
        ("vllm", "vllm/vllm-openai:v0.23.0", ON_GPU, "cpu", "cpu"),
        ("vllm", "vllm/vllm-openai-rocm:v0.23.0", ON_CPU, None, "cuda"),
        ("sglang", "lmsysorg/sglang:v0.5.3-xeon", ON_GPU, None, "cpu"),
        ("sglang", "lmsysorg/sglang:v0.5.17-cu130", ON_CPU, None, "cuda"),
        ("llamacpp", "ghcr.io/ggml-org/llama.cpp:server-cuda12-b8562", ON_CPU, None, "cuda"),
        ("llamacpp", "mine/cpuserver:1", ON_GPU, None, "cuda"),
    ],
)
def test_the_device_of_an_image(engine: str, named: str, machine: Machine, wanted: str | None, device: str) -> None:
    assert engines.get(engine).image("1", named, machine, wanted).build.device == device

"""Engines launched in containers of a stand-in for docker: probe, endpoints, log, stop, and what goes wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from engdiff import errors
from engdiff.redact import REDACTED
from engdiff.references import EngineReference
from engdiff.schema.capture import Capture, Environment
from engdiff.schema.values import Known, Unknown, plain
from engdiff.sources.acquire import Wishes, acquire
from engdiff.sources.order import Outcome
from engdiff.sources.probe import read_probe
from engdiff.sources.rehearse import rehearse
from tests.containers import FakeDocker

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the stand-in passes descriptors as Linux does")

ROOT = Path(__file__).parents[2]
IMAGE = "vllm/vllm-openai-cpu:v0.33.0"
LLAMA_IMAGE = "ghcr.io/ggml-org/llama.cpp:server-b8929"
PATIENCE_S = 30.0


def until(condition: Callable[[], object]) -> bool:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


def launched(
    engine: str, version: str | None, image: str, *arguments: str, said: list[str], **wishes: object
) -> Outcome:
    made = Wishes(model="tiny", arguments=arguments, container=image, **wishes)  # type: ignore[arg-type]
    return acquire(EngineReference(engine, version), made, said.append)


@pytest.fixture
def said() -> list[str]:
    return []


def known(capture: Capture, key: str) -> object:
    return plain(capture.settings[key].final)


# --- with a Python in the image ---------------------------------------------------------------------------------


def test_a_capture_in_a_container(
    docker: FakeDocker, said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_abcdefghijklmnopqrst")
    monkeypatch.setenv("PYTHONPATH", "/of/this/machine")
    monkeypatch.setenv("VLLM_LOGGING_LEVEL", "INFO")
    log = tmp_path / "kept.log"
    outcome = launched(
        "vllm", "0.33.0", IMAGE, "--max-num-seqs", "4", said=said, keep_log=log, variables={"VLLM_API_KEY": "sesame"}
    )
    made = outcome.capture
    assert outcome.error is None
    assert known(made, "scheduler.max_num_seqs") == 4
    assert made.settings["scheduler.max_num_seqs"].origin == "user"
    # what the image holds is asked, not read off its tag
    assert isinstance(made.identity.version, Known)
    assert made.identity.version.value == "0.33.0"
    assert made.identity.version.evidence is not None
    assert made.identity.version.evidence.where == f"vllm in {IMAGE}"
    environment = made.identity.environment
    assert isinstance(environment, Environment)
    assert (environment.managed, environment.interpreter, environment.packages["helper"]) == (False, "python3", "1.5")
    assert made.launch.image == IMAGE
    assert f"run in {IMAGE}, sha256:0123" in made.notes
    # the command is the container's; the variables are the user's, without their secrets
    assert made.launch.command[1:4] == ("run", "--rm", "--init")
    assert made.launch.variables["HF_TOKEN"] == made.launch.variables["VLLM_API_KEY"] == REDACTED
    text = made.model_dump_json() + log.read_text()
    assert "sesame" not in text
    assert "hf_abc" not in text
    # the processes are those inside
    (process,) = made.instances[0].processes
    assert process.name == "front end"


def test_what_docker_was_asked_for(
    docker: FakeDocker, said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_TOKEN", "hf_abcdefghijklmnopqrst")
    monkeypatch.setenv("LD_PRELOAD", "")
    (tmp_path / "extra.yaml").write_text("in: here")
    log = tmp_path / "kept.log"
    launched(
        "vllm", None, IMAGE, "--config", "extra.yaml", said=said, keep_log=log, variables={"MINE": "1", "HF_T": "2"}
    )
    asking, running = docker.runs
    assert asking.one("--entrypoint") == running.one("--entrypoint") == "python3"
    assert asking.one("--network") == "none"
    given = running.options["-e"]
    assert "HF_TOKEN" in given
    assert {"MINE=1", "HF_T=2"} <= set(given)
    assert not any(word.startswith(("PATH=", "LD_PRELOAD", "HOME")) for word in given)
    (path,) = [word.partition("=")[2] for word in given if word.startswith("PYTHONPATH=")]
    assert path.endswith(f"/plugin:{tmp_path / 'site'}")  # the probe, and what the image has
    assert docker.environments[1]["HF_TOKEN"].startswith("hf_")
    mounts = running.mounts()
    model = tmp_path / "cache" / "models"
    assert [mode for path, mode in mounts.items() if Path(path).is_relative_to(model)] == ["ro"]
    (folder,) = [path for path in mounts if Path(path).name.startswith("engdiff-")]
    assert (mounts[folder], mounts[f"{folder}/probe"]) == ("ro", "rw")
    assert running.one("-w") == str(tmp_path)
    assert "config in: here" in log.read_text()
    assert "'HF_TOKEN': [redacted]" in log.read_text().replace("'[redacted]'", "[redacted]")


def test_nothing_is_left_afterwards(docker: FakeDocker, said: list[str], tmp_path: Path) -> None:
    launched("vllm", None, IMAGE, said=said)
    assert docker.running == {}
    name = docker.runs[1].one("--name")
    assert docker.calls[-1] == ["rm", "--force", "--volumes", name]
    assert list((tmp_path / "t").iterdir()) == []
    assert not [line for line in said if line.startswith("warning")]


def test_it_is_asked_to_stop_first(docker: FakeDocker, said: list[str], tmp_path: Path) -> None:
    """Ctrl-C goes through docker to the engine, which ends in its own way."""
    log = tmp_path / "kept.log"
    launched("vllm", None, IMAGE, said=said, keep_log=log)
    assert "stopped politely" in log.read_text()
    assert ["kill", docker.runs[1].one("--name"), str(int(signal.SIGINT))] in docker.calls


def test_the_same_engine_without_a_container(
    docker: FakeDocker, said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.setenv("OUTSIDE", "1")
    wishes = Wishes(model="tiny", arguments=("--max-num-seqs", "4"), python=Path(sys.executable))
    outcome = acquire(EngineReference("vllm", "0.33.0"), wishes, said.append)
    made = outcome.capture
    assert outcome.error is None
    assert known(made, "scheduler.max_num_seqs") == 4
    assert (made.launch.command[0], made.launch.image) == (sys.executable, None)
    assert [process.name for process in made.instances[0].processes] == ["front end"]
    assert docker.calls == []


# --- llama.cpp: no Python there ---------------------------------------------------------------------------------


def test_llama_server_is_read_from_endpoints_and_log(docker: FakeDocker, said: list[str]) -> None:
    outcome = launched("llamacpp", "2026.4.8929", "default", "-np", "1", "-c", "32768", said=said, build="cpu")
    made = outcome.capture
    assert outcome.error is None
    assert docker.calls[1] == ["pull", LLAMA_IMAGE]
    assert len(docker.runs) == 1  # nothing to ask
    # the build that answers, not the one that the tag names
    assert plain(made.identity.version) == "b6105"
    assert plain(made.identity.commit) == "d2c0ffee"
    assert isinstance(made.identity.environment, Unknown)
    assert "no Python" in made.identity.environment.because
    assert any("no Python for a probe" in note for note in made.notes)
    assert made.launch.image == LLAMA_IMAGE
    assert made.launch.added_by_engdiff == {
        "-lv 4": "so that the log states buffer sizes",
        "--metrics": "so that counters can be read",
    }
    slots, total = made.settings["scheduler.max_num_seqs"], made.settings["model.context_total"]
    assert (plain(slots.effective), plain(slots.configured), slots.origin) == (1, 1, "user")
    assert (plain(total.effective), total.origin) == (32768, "user")
    assert known(made, "sampling.temperature") == 0.8
    assert len(made.instances[0].ranks) == 3
    assert isinstance(next(p for p in made.boot if p.name == "start to healthy").seconds, Known)
    assert docker.runs[0].arguments[:2] == ["-m", made.launch.model]
    assert "-v" in docker.runs[0].options  # the model alone: no probe is mounted
    assert len(docker.runs[0].mounts()) == 1


def test_a_word_that_our_table_lacks_still_goes_to_llama_server(docker: FakeDocker, said: list[str]) -> None:
    outcome = launched("llamacpp", "2026.4.8929", "default", "--brand-new", said=said)
    assert outcome.error is None
    assert any("--brand-new" in note for note in outcome.capture.notes)
    assert outcome.capture.settings["scheduler.max_num_seqs"].configured is None


@pytest.mark.parametrize(("word", "exit_text"), [("--die", "exit code 3"), ("--crash", "killed by SIGILL")])
def test_a_start_that_fails_in_there(docker: FakeDocker, said: list[str], word: str, exit_text: str) -> None:
    outcome = launched("llamacpp", "2026.4.8929", "default", word, said=said)
    assert outcome.error is not None
    assert "llama.cpp in ghcr.io/ggml-org/llama.cpp:server-b8929 died at start" in outcome.error.message
    assert outcome.capture.failure is not None
    assert outcome.capture.failure.exit == exit_text
    assert plain(outcome.capture.identity.version) == "b6105"  # from its log


# --- what goes wrong around it ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ('docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
         "docker cannot give a GPU to a container"),
        ("docker: Error response from daemon: Bind for 127.0.0.1:1 failed: port is already allocated.",
         "the port was taken in the meantime"),
    ],
)  # fmt: skip
def test_a_container_that_does_not_start(
    docker: FakeDocker, said: list[str], words: str, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    docker.fails["run"] = (125, words + "\n")
    outcome = launched("llamacpp", "2026.4.8929", "default", said=said)
    assert outcome.error is not None
    assert outcome.error.cause == cause
    assert outcome.error.advice
    assert outcome.capture.failure is not None
    assert outcome.capture.failure.stage == "container"
    assert isinstance(outcome.capture.identity.version, Unknown)


@pytest.mark.parametrize(
    ("verb", "said_by_docker", "problem"),
    [
        ("pull", "Error response from daemon: manifest for x not found: manifest unknown", "there is no such image"),
        ("pull", "something quite new", "docker failed"),
        ("image", "Cannot connect to the Docker daemon. Is the docker daemon running?", "daemon does not run"),
    ],
)
def test_an_image_that_cannot_be_had(
    docker: FakeDocker, said: list[str], verb: str, said_by_docker: str, problem: str
) -> None:
    docker.fails["pull"] = (1, said_by_docker)
    docker.fails[verb] = (1, said_by_docker)
    with pytest.raises(errors.ImageFailed, match=problem) as raised:
        launched("vllm", "0.33.0", "vllm/vllm-openai:v0.33.0", said=said)
    assert said_by_docker in raised.value.message
    assert raised.value.exit_code == errors.EXIT_ENGINE_FAILED
    assert not docker.runs


def test_an_image_without_the_engine(docker: FakeDocker, said: list[str]) -> None:
    docker.images["mine/other:1"] = {}
    with pytest.raises(errors.ImageFailed, match="mine/other:1: the engine is not in it: no package `vllm`"):
        launched("vllm", None, "mine/other:1", said=said)


def test_an_image_without_a_python(docker: FakeDocker, said: list[str]) -> None:
    docker.images["mine/other:1"] = {}
    docker.programs.clear()
    with pytest.raises(errors.ImageFailed, match="the program of the engine is not in the image"):
        launched("vllm", None, "mine/other:1", said=said)


@pytest.mark.parametrize(("version", "image"), [("0.32.0", IMAGE), ("0.32.0", "mine/vllm:1")])
def test_another_version_than_asked_for(docker: FakeDocker, said: list[str], version: str, image: str) -> None:
    docker.images["mine/vllm:1"] = docker.images[IMAGE]
    with pytest.raises(errors.UsageError, match=f"{image} has vLLM 0.33.0, not 0.32.0"):
        launched("vllm", version, image, said=said)


def test_no_docker_at_all(docker: FakeDocker, said: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(errors.NoContainerTool, match="neither docker nor podman") as raised:
        launched("vllm", None, IMAGE, said=said)
    assert raised.value.exit_code == errors.EXIT_UNFIT


def test_two_places_for_one_engine(docker: FakeDocker, said: list[str]) -> None:
    with pytest.raises(errors.UsageError, match="--python and --container"):
        launched("vllm", None, IMAGE, said=said, python=Path(sys.executable))


def test_a_container_that_cannot_be_removed_is_told(docker: FakeDocker, said: list[str]) -> None:
    docker.fails["rm"] = (1, "Error response from daemon: something is in the way")
    launched("vllm", None, IMAGE, said=said)
    (warning,) = [line for line in said if line.startswith("warning")]
    assert "something is in the way" in warning
    assert f"rm --force --volumes {docker.runs[1].one('--name')}" in warning


# --- killed -----------------------------------------------------------------------------------------------------


def engdiff(tmp_path: Path, *words: str) -> subprocess.Popen[bytes]:
    """Which reads endpoints for ever, once the server is up."""
    code = (
        "import time; from pathlib import Path; from engdiff.sources import launch; from engdiff.cli.app import main; "
        "launch._read = lambda url: (Path('reading').touch(), time.sleep(600)); main()"
    )
    given = ("capture", "llamacpp@2026.4.8929", "--container", "default", "--model", "tiny", "--build", "cpu", "--")
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path / "t")}
    return subprocess.Popen([sys.executable, "-c", code, *given, *words], cwd=tmp_path, env=environ)


@pytest.mark.parametrize(("number", "words"), [(signal.SIGKILL, ["--stubborn"]), (signal.SIGINT, [])])
def test_the_container_goes_with_engdiff(
    docker: FakeDocker, tmp_path: Path, number: signal.Signals, words: list[str]
) -> None:
    process = engdiff(tmp_path, *words)
    assert until((tmp_path / "reading").exists)
    (inside,) = docker.running.values()
    process.send_signal(number)
    assert process.wait(PATIENCE_S) in (-signal.SIGKILL, errors.EXIT_INTERRUPTED)
    assert until(lambda: inside.poll() is not None)
    assert until(lambda: docker.calls[-1][0] == "rm")
    assert until(lambda: not list((tmp_path / "t").glob("engdiff-*")))


def test_the_container_goes_when_the_guard_is_killed(docker: FakeDocker, tmp_path: Path) -> None:
    process = engdiff(tmp_path, "--stubborn")
    assert until((tmp_path / "reading").exists)
    (inside,) = docker.running.values()
    (guard,) = [c for c in psutil.Process(process.pid).children() if "engdiff.process.guard" in c.cmdline()]
    guard.kill()
    time.sleep(0.2)
    assert inside.poll() is None  # the client is gone with the guard, and the container is nobody's
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == errors.EXIT_INTERRUPTED
    assert inside.poll() is not None


# --- the command alone ------------------------------------------------------------------------------------------


def rehearsed(tmp_path: Path, said: list[str], image: str, *arguments: str, **wishes: object) -> str:
    made = Wishes(model="tiny", arguments=arguments, container=image, **wishes)  # type: ignore[arg-type]
    return rehearse(EngineReference("vllm", None), made, said.append)


def test_the_command_that_is_shown_runs_when_it_is_pasted(docker: FakeDocker, said: list[str], tmp_path: Path) -> None:
    line = rehearsed(tmp_path, said, IMAGE, "--max-num-seqs", "4")
    assert [call[0] for call in docker.calls] == ["image"]  # looked, and nothing else
    (folder,) = (tmp_path / "t").iterdir()
    assert said == [
        f"note: {folder} holds the probe that the command uses; afterwards: engdiff capture --probe {folder}/probe"
    ]
    shell = subprocess.Popen(["sh", "-c", line])
    try:
        assert until((folder / "probe" / "core-0.json").exists)
        made = read_probe(folder / "probe", None)
        assert known(made, "scheduler.max_num_seqs") == 4
    finally:
        subprocess.run(["docker", "rm", "--force", docker.runs[0].one("--name")], check=True, capture_output=True)
        shell.wait(PATIENCE_S)


def test_a_secret_is_not_shown(docker: FakeDocker, said: list[str], tmp_path: Path) -> None:
    line = rehearsed(tmp_path, said, IMAGE, "--api-key", "sesame-42", variables={"HF_TOKEN": "hf_" + "a" * 20})
    assert "-e HF_TOKEN " in line
    assert f"--api-key '{REDACTED}'" in line
    assert not {"sesame-42", "hf_aaa"} & set(line.split())
    assert said[:2] == [
        "note: HF_TOKEN is a secret, which is not shown: export it before the command is run",
        "note: a secret among the words is shown as [redacted]: write it in again before the command is run",
    ]


def test_the_version_in_an_image_need_not_be_known(docker: FakeDocker, said: list[str], tmp_path: Path) -> None:
    assert "mine/vllm:7" in rehearsed(tmp_path, said, "mine/vllm:7")
    assert said[0].startswith("note: the version in mine/vllm:7 is not known before it runs: the command is as for ")


def test_nothing_is_left_of_a_command_that_cannot_be_made(
    docker: FakeDocker, said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(request: object) -> None:
        raise errors.UsageError("no", "leave it")

    monkeypatch.setattr("engdiff.engines.vllm.launch.plan", refuse)
    with pytest.raises(errors.UsageError):
        rehearsed(tmp_path, said, IMAGE)
    assert not list((tmp_path / "t").iterdir())

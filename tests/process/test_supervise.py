"""Fake engines that misbehave: whatever they do, nothing of them may be left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from engdiff.errors import EngineFailed
from engdiff.process.guard import Tree
from engdiff.process.leftovers import processes_of
from engdiff.process.supervise import EngineCommand, ExitStatus, RunningEngine, StopLimits, running

pytestmark = pytest.mark.skipif(os.name != "posix", reason="engines are launched on POSIX systems only")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="orphans are adopted on Linux only")

ROOT = Path(__file__).parents[2]
PATIENCE_S = 30.0  # generous: the machine may be busy; polled, so that a quick machine does not wait
SHORT = StopLimits(1.0, 1.0, 10.0)


def until(condition: Callable[[], object], limit_s: float = PATIENCE_S) -> bool:
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


@pytest.fixture
def mark(request: pytest.FixtureRequest) -> Iterator[str]:
    """A word in the command line of every process of a fake engine, by which they are found."""
    word = f"engdiff-fake-{os.getpid()}-{abs(hash(request.node.name))}"
    yield word
    for process in marked(word):  # a failed test must not leave them either
        process.kill()


def marked(word: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if word in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def python(program: str, *words: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-c", textwrap.dedent(program), *words)


def order(folder: Path, argv: tuple[str, ...], limits: StopLimits = SHORT) -> EngineCommand:
    return EngineCommand(argv, dict(os.environ), folder, folder / "logs" / "engine.log", limits)


def ready_file(folder: Path) -> Callable[[], bool]:
    return (folder / "ready").exists


STUBBORN = """
    import os, signal, socket, subprocess, sys, time
    from multiprocessing import shared_memory
    mark = sys.argv[1]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    stay = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); open({0!r}, 'w'); time.sleep(600)"
    if os.fork() == 0:          # the child leaves the session, its child is an orphan at once
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, "-S", "-c", stay.format("detached"), mark])
        os._exit(0)
    os.wait()
    segment = shared_memory.SharedMemory(create=True, size=4096)
    quiet = shared_memory.SharedMemory(create=True, size=4096)
    from multiprocessing import resource_tracker
    resource_tracker.unregister(quiet._name, "shared_memory")       # nobody will unlink this one
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.join(os.environ["TMPDIR"], "s" * 36 + ".sock"))
    while not os.path.exists("detached"):
        time.sleep(0.01)
    with open("facts", "w") as facts:
        print(segment._name, quiet._name, os.environ["TMPDIR"], file=facts)
    open("ready", "w").close()
    time.sleep(600)
"""


@linux
def test_nothing_is_left_of_an_engine_that_ignores_signals_and_detaches(tmp_path: Path, mark: str) -> None:
    with running(order(tmp_path, python(STUBBORN, mark))) as engine:
        assert engine.wait_until(ready_file(tmp_path), PATIENCE_S).state == "ready"
        segment, quiet, folder = (tmp_path / "facts").read_text().split()
        assert len(os.fsencode(folder)) <= 60
        assert all(Path("/dev/shm" + name).exists() for name in (segment, quiet))
        facts = engine.processes()
        assert engine.pid in [fact.pid for fact in facts]
        assert len([fact for fact in facts if mark in fact.command]) == 2
        assert all(fact.threads >= 1 and fact.name and fact.title for fact in facts)
        report = engine.stop()
    assert report.step == "kill"
    assert report.left == ()
    assert f"/dev/shm{quiet}" in report.removed
    assert any(path.endswith(".sock") for path in report.removed)
    assert not marked(mark)
    assert not any(Path("/dev/shm" + name).exists() for name in (segment, quiet))
    assert not Path(folder).exists()
    assert engine.exit() == ExitStatus(None, "SIGKILL")
    assert engine.stop() == report  # again: only reports


@linux
def test_shared_memory_that_was_there_before_is_left_alone(tmp_path: Path, mark: str) -> None:
    theirs = Path(f"/dev/shm/{mark}")
    theirs.write_bytes(b"x")
    try:
        program = "import sys, time; f = open(sys.argv[2]); open('ready', 'w').close(); time.sleep(600)"
        with running(order(tmp_path, python(program, mark, str(theirs)))) as engine:
            assert engine.wait_until(ready_file(tmp_path), PATIENCE_S).state == "ready"
            assert engine.stop().removed == ()
        assert theirs.exists()
    finally:
        theirs.unlink()


HOST = """
    import os, sys, time
    from pathlib import Path
    from engdiff.process.supervise import EngineCommand, StopLimits, running
    folder = Path(sys.argv[1])
    limits = StopLimits(float(sys.argv[2]), 1, 10)
    command = EngineCommand(tuple(sys.argv[3:]), dict(os.environ), folder, folder / "log", limits)
    try:
        with running(command) as engine:
            engine.wait_until((folder / "ready").exists, 60)
            (folder / "running").touch()
            try:
                time.sleep(600)
            finally:
                (folder / "stopping").touch()
    except KeyboardInterrupt:
        (folder / "interrupted").touch()
        raise SystemExit(130)
"""


def host(folder: Path, argv: tuple[str, ...], ask_s: str = "1") -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", textwrap.dedent(HOST), str(folder), ask_s, *argv]
    # a session of its own, so that Ctrl-C can be sent to it as a terminal would: to the whole foreground group
    return subprocess.Popen(words, env=os.environ | {"PYTHONPATH": str(ROOT)}, start_new_session=True)


@linux
def test_killing_engdiff_leaves_nothing(tmp_path: Path, mark: str) -> None:
    engdiff = host(tmp_path, python(STUBBORN, mark))
    assert until((tmp_path / "running").exists)
    engdiff.kill()
    engdiff.wait()
    assert marked(mark)
    _, quiet, folder = (tmp_path / "facts").read_text().split()
    assert until(lambda: not marked(mark), PATIENCE_S)
    assert until(lambda: not Path(folder).exists() and not Path("/dev/shm" + quiet).exists())


def test_ctrl_c_stops_everything(tmp_path: Path, mark: str) -> None:
    program = """
        import subprocess, sys, time
        subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)", sys.argv[1]])
        open("ready", "w").close()
        time.sleep(600)
    """
    engdiff = host(tmp_path, python(program, mark))
    assert until((tmp_path / "running").exists)
    assert len(marked(mark)) == 3  # engdiff itself among them: the word is in its command line
    os.killpg(engdiff.pid, signal.SIGINT)
    assert engdiff.wait(PATIENCE_S) == 130
    assert (tmp_path / "interrupted").exists()
    assert not marked(mark)


def test_ctrl_c_is_raised_again(tmp_path: Path, mark: str) -> None:
    def interrupted() -> None:
        with running(order(tmp_path, python("import time; time.sleep(600)", mark))):
            assert until(lambda: len(marked(mark)) == 1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not marked(mark)


def test_ctrl_c_during_a_stop_kills_at_once(tmp_path: Path, mark: str) -> None:
    program = """
        import signal, time
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        open("ready", "w").close()
        time.sleep(600)
    """
    began = time.monotonic()
    engdiff = host(tmp_path, python(program, mark), "600")
    assert until((tmp_path / "running").exists)
    os.killpg(engdiff.pid, signal.SIGINT)
    assert until((tmp_path / "stopping").exists)
    os.killpg(engdiff.pid, signal.SIGINT)
    assert engdiff.wait(PATIENCE_S) == 130
    assert time.monotonic() - began < 600
    assert not marked(mark)


def test_a_polite_engine_needs_only_to_be_asked(tmp_path: Path, mark: str) -> None:
    program = """
        import time
        open("ready", "w").close()
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            print("bye")
    """
    with running(order(tmp_path, python(program, mark), StopLimits(PATIENCE_S, 5, 5))) as engine:
        assert engine.wait_until(ready_file(tmp_path), PATIENCE_S).state == "ready"
        assert engine.alive()
    assert engine.stop().step == "ask"
    assert engine.exit() == ExitStatus(0, None)
    assert "bye" in (tmp_path / "logs" / "engine.log").read_text()


def test_death_by_a_signal_has_a_name(tmp_path: Path) -> None:
    program = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
    with running(order(tmp_path, python(program))) as engine:
        result = engine.wait_until(lambda: False, PATIENCE_S)
        assert result.state == "died"
        assert result.exit == ExitStatus(None, "SIGILL")
        assert str(result.exit) == "killed by SIGILL"
        assert not engine.alive()


def test_an_engine_that_never_becomes_ready(tmp_path: Path, mark: str) -> None:
    ticks: list[float] = []
    with running(order(tmp_path, python("import time; time.sleep(600)", mark))) as engine:
        result = engine.wait_until(lambda: False, 0.5, ticks.append)
        assert result.state == "timed out"
        assert result.exit is None
        assert result.seconds >= 0.5
        assert ticks == sorted(ticks)
        assert ticks
    assert not marked(mark)


@linux
def test_a_daemon_of_an_engine_that_exits_is_stopped(tmp_path: Path, mark: str) -> None:
    program = """
        import os, sys
        if os.fork() == 0:
            os.setsid()
            os.execv(sys.executable, [sys.executable, "-S", "-c", "import time; time.sleep(600)", sys.argv[1]])
    """
    with running(order(tmp_path, python(program, mark))) as engine:
        assert engine.wait_until(lambda: False, PATIENCE_S).exit == ExitStatus(0, None)
        assert until(lambda: not marked(mark))
        report = engine.stop()
    assert report.step == "terminate"
    assert report.left == ()


def test_a_command_that_cannot_be_started(tmp_path: Path) -> None:
    with (
        pytest.raises(EngineFailed, match=r"no-such-engine: cannot be started: .*No such file"),
        running(order(tmp_path, ("no-such-engine",))),
    ):
        pytest.fail("it was started")


@linux
def test_a_killed_guard_takes_the_engine_along(tmp_path: Path, mark: str) -> None:
    def guard_of(engine: RunningEngine) -> psutil.Process:
        parent = psutil.Process(engine.pid).parent()
        assert parent is not None
        return parent

    with running(order(tmp_path, python(STUBBORN, mark))) as engine:
        assert engine.wait_until(ready_file(tmp_path), PATIENCE_S).state == "ready"
        segment, quiet, folder = (tmp_path / "facts").read_text().split()
        guard_of(engine).kill()
        assert engine.wait_until(lambda: False, PATIENCE_S).state == "died"
        assert engine.stop().step == "kill"
    assert not marked(mark)
    assert not Path(folder).exists()
    assert not Path("/dev/shm" + segment).exists()
    Path("/dev/shm" + quiet).unlink()  # the price of losing the guard: nobody knows any more whose it is


def removing(folder: Path, argv: tuple[str, ...], program: str) -> EngineCommand:
    return replace(order(folder, argv), removal=(sys.executable, "-S", "-c", program))


@pytest.mark.parametrize("program", ["import time; time.sleep(600)", "pass", "import os; os.abort()"])
def test_what_is_outside_the_tree_is_removed_however_the_engine_ends(tmp_path: Path, mark: str, program: str) -> None:
    removed = tmp_path / "removed"
    with running(removing(tmp_path, python(program, mark), f"open({str(removed)!r}, 'a').write('x')")) as engine:
        engine.wait_until(lambda: False, 0.5)
        report = engine.stop()
    assert removed.read_text() == "x"
    assert report.unremoved == ""


def test_it_is_removed_when_the_guard_was_killed(tmp_path: Path, mark: str) -> None:
    removed = tmp_path / "removed"
    with running(removing(tmp_path, python(STUBBORN, mark), f"open({str(removed)!r}, 'a').write('x')")) as engine:
        assert engine.wait_until(ready_file(tmp_path), PATIENCE_S).state == "ready"
        guard = psutil.Process(engine.pid).parent()
        assert guard is not None
        guard.kill()
        assert engine.wait_until(lambda: False, PATIENCE_S).state == "died"
        assert not removed.exists()
        assert engine.stop().unremoved == ""
        assert removed.exists()
    for name in (tmp_path / "facts").read_text().split()[:2]:
        Path("/dev/shm" + name).unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("raise SystemExit('the daemon is away')", "the daemon is away"),
        ("raise SystemExit(3)", "exit code 3"),
        ("raise SystemExit('Error response from daemon: No such container: x')", ""),
        ("raise SystemExit('Error: no container with ID or name x found: no such container')", ""),
    ],
)
def test_what_could_not_be_removed_is_told(tmp_path: Path, program: str, said: str) -> None:
    with running(removing(tmp_path, python("pass"), program)) as engine:
        assert engine.stop().unremoved == said


def test_without_adoption_orphans_are_found_by_their_folder(
    tmp_path: Path, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on macOS."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    stray = subprocess.Popen(python("import time; time.sleep(600)", mark))
    try:
        tree = Tree(adopts_orphans=False, folder=str(tmp_path))
        # a moment after its start a process has no environment to read yet
        assert until(lambda: stray.pid in [process.pid for process in processes_of(str(tmp_path))])
        assert [process.pid for process in tree.living()].count(stray.pid) == 1
    finally:
        stray.kill()
        stray.wait()
    assert processes_of(str(tmp_path)) == []


def test_only_the_engine_gets_the_given_environment(tmp_path: Path) -> None:
    program = "import json, os; print(json.dumps(sorted(os.environ)))"
    command = EngineCommand(python(program), {"ONLY": "this"}, tmp_path, tmp_path / "log", SHORT)
    with running(command) as engine:
        engine.wait_until(lambda: False, PATIENCE_S)
    names = set((tmp_path / "log").read_text().replace('"', "").strip("[]\n").split(", "))
    assert names - {"LC_CTYPE", "__CF_USER_TEXT_ENCODING"} == {"ONLY", "TMPDIR"}


def test_the_package_loads_where_posix_modules_are_missing() -> None:
    program = """
        import sys
        for name in ("fcntl", "pwd", "grp", "termios", "resource", "pty"):
            sys.modules[name] = None
        import engdiff.process, engdiff.process.ports, engdiff.process.tail, engdiff.process.readiness
    """
    words = [sys.executable, "-c", textwrap.dedent(program)]
    subprocess.run(words, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True)

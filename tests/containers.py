"""A stand-in for docker: a program on the PATH, and a daemon in this process, which runs containers on this machine.

As with the real one a container is no child of the program that asked for it: who kills that program, or its parents,
leaves the container running. Paths are the same inside and outside, so that what is mounted is simply there.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

CLIENT = r"""
import json, os, signal, socket, sys

def ask(order, fds=()):
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(os.environ["FAKE_DOCKER"])
        socket.send_fds(link, [json.dumps(order).encode() + b"\n"], list(fds))
        answer = b""
        while not answer.endswith(b"\n"):
            data = link.recv(65536)
            if not data:
                sys.exit("docker: Cannot connect to the Docker daemon. Is the docker daemon running?")
            answer += data
    return json.loads(answer)

words = sys.argv[1:]
if words == ["--version"]:
    print("Docker version 28.2.2, build fake")
    raise SystemExit
name = words[words.index("--name") + 1] if "--name" in words else ""
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: ask({"words": ["kill", name, str(int(number))], "env": {}}))
answer = ask({"words": words, "env": dict(os.environ)}, (1, 2))
sys.stdout.write(answer["out"])
sys.stderr.write(answer["err"])
raise SystemExit(answer["code"])
"""

ALONE = ("--rm", "--init")
WITH_VALUE = (
    *("--name", "--gpus", "--shm-size", "--security-opt", "--cap-add", "--ulimit", "--device", "--group-add"),
    *("-p", "-v", "--mount", "-w", "-e", "--entrypoint", "--network"),
)


@dataclass(frozen=True)
class Asked:
    """One ``docker run`` as the daemon understands it."""

    options: dict[str, list[str]]
    image: str
    arguments: list[str]

    def one(self, name: str, otherwise: str = "") -> str:
        return self.options.get(name, [otherwise])[0]

    def mounts(self) -> dict[str, str]:
        """Path to mode."""
        found = {}
        for text in self.options.get("-v", []):
            source, target, *mode = text.split(":")
            assert source == target, text
            found[source] = mode[0] if mode else "rw"
        return found


def understand(words: list[str]) -> Asked:
    """Options, image and arguments. Raises ValueError for an option that docker does not have."""
    options: dict[str, list[str]] = {}
    rest = list(words)
    while rest and rest[0].startswith("-"):
        name, equals, value = rest.pop(0).partition("=")
        if name not in ALONE + WITH_VALUE:
            raise ValueError(f"unknown flag: {name}")
        options.setdefault(name, []).append("" if name in ALONE else value if equals else rest.pop(0))
    return Asked(options, rest[0], rest[1:])


@dataclass
class FakeDocker:
    """The daemon. ``images`` maps names to what they set as variables; ``programs`` maps programs of images to ours."""

    folder: Path
    images: dict[str, dict[str, str]] = field(default_factory=dict)
    in_registry: dict[str, dict[str, str]] = field(default_factory=dict)
    programs: dict[str, list[str]] = field(default_factory=lambda: {"python3": [sys.executable]})
    calls: list[list[str]] = field(default_factory=list)
    runs: list[Asked] = field(default_factory=list)
    environments: list[dict[str, str]] = field(default_factory=list)
    fails: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Verb to exit code and words."""
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self) -> None:
        bin_folder = self.folder / "bin"
        bin_folder.mkdir(parents=True)
        program = bin_folder / "docker"
        program.write_text(f"#!{sys.executable} -S{CLIENT}")
        program.chmod(0o755)
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(self.folder / "s"))
        self._server.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._server.close()
        for name in list(self.running):
            self._remove(name)

    def variables(self) -> dict[str, str]:
        return {
            "FAKE_DOCKER": str(self.folder / "s"),
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        }

    def _serve(self) -> None:
        while True:
            try:
                link, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(link,), daemon=True).start()

    def _answer(self, link: socket.socket) -> None:
        with link, suppress(OSError):
            text, fds, _, _ = socket.recv_fds(link, 2**20, 2)
            while not text.endswith(b"\n"):
                text += link.recv(2**20)
            order = json.loads(text)
            try:
                answer = self._do(order["words"], order["env"], fds)
            finally:
                for fd in fds:
                    os.close(fd)
            link.sendall(json.dumps(dict(zip(("code", "out", "err"), answer, strict=True))).encode() + b"\n")

    def _do(self, words: list[str], environ: dict[str, str], fds: list[int]) -> tuple[int, str, str]:
        verb, *rest = words
        self.calls.append(words)
        if verb in self.fails:
            code, said = self.fails[verb]
            return code, "", said
        if verb == "image":
            return self._inspect(rest[1])
        if verb == "pull":
            if rest[0] not in self.in_registry:
                return 1, "", f"Error response from daemon: manifest for {rest[0]} not found: manifest unknown\n"
            self.images[rest[0]] = self.in_registry[rest[0]]
            return 0, "Status: Downloaded newer image\n", ""
        if verb == "run":
            return self._run(rest, environ, fds)
        named = [word for word in rest if not word.startswith("-")]
        if verb == "rm":
            return self._remove(named[0])
        return self._top(named[0]) if verb == "top" else self._kill(*named)

    def _inspect(self, image: str) -> tuple[int, str, str]:
        if image not in self.images:
            return 1, "[]\n", f"Error response from daemon: No such image: {image}\n"
        variables = [f"{name}={value}" for name, value in self.images[image].items()]
        return 0, json.dumps([{"Id": "sha256:0123", "Config": {"Env": variables}}]), ""

    def _run(self, words: list[str], environ: dict[str, str], fds: list[int]) -> tuple[int, str, str]:
        try:
            asked = understand(words)
        except ValueError as error:
            return 125, "", f"{error}\n"
        self.runs.append(asked)
        self.environments.append(environ)
        if missing := [path for path in asked.mounts() if not Path(path).exists()]:
            return 125, "", f"docker: Error response from daemon: invalid mount config: {missing}\n"
        inside = {"PATH": os.environ["PATH"], **self.images[asked.image]}
        for text in asked.options.get("-e", []):
            name, equals, value = text.partition("=")
            if equals or name in environ:
                inside[name] = value if equals else environ[name]
        program, *arguments = [*asked.options.get("--entrypoint", []), *asked.arguments]
        if program not in self.programs:
            return 127, "", f'docker: exec: "{program}": executable file not found in $PATH\n'
        process = subprocess.Popen(
            [*self.programs[program], *arguments],
            env=inside,
            cwd=asked.one("-w", "/"),
            stdin=subprocess.DEVNULL,
            stdout=fds[0],
            stderr=fds[1],
            start_new_session=True,
        )
        name = asked.one("--name", f"none-{process.pid}")
        self.running[name] = process
        code = process.wait()
        self.running.pop(name, None)
        return code if code >= 0 else 128 - code, "", ""

    def _remove(self, name: str) -> tuple[int, str, str]:
        process = self.running.get(name)
        if process is None:
            return 1, "", f"Error response from daemon: No such container: {name}\n"
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return 0, f"{name}\n", ""

    def _kill(self, name: str, number: str) -> tuple[int, str, str]:
        if process := self.running.get(name):
            process.send_signal(int(number))
        return 0, "", ""

    def _top(self, name: str) -> tuple[int, str, str]:
        if name not in self.running:
            return 1, "", f"Error response from daemon: No such container: {name}\n"
        main = psutil.Process(self.running[name].pid)
        rows = [f"{main.ppid()} 1 1 /sbin/docker-init -- python3"]
        rows += [
            f"{one.pid} {one.ppid()} {one.num_threads()} {' '.join(one.cmdline())}"
            for one in (main, *main.children(recursive=True))
        ]
        return 0, "\n".join(["PID PPID NLWP COMMAND", *rows]) + "\n", ""

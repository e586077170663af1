"""What the last words of docker and podman mean. They have no codes for their failures, so that their text is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from engdiff.redact import redact_text

OWN_EXIT_CODES = (125, 126, 127)
"""``run`` ends with 125 when docker or podman itself failed, 126 and 127 when the program in the image cannot be
started (docs.docker.com, "docker container run", exit status). Any other code is the engine's own."""


class Trouble(NamedTuple):
    """One sentence, and what to do. ``{image}`` and ``{tool}`` stand in both."""

    problem: str
    advice: str


_TABLE: tuple[tuple[tuple[str, ...], Trouble], ...] = (
    (
        ("permission denied while trying to connect", "docker.sock: connect: permission denied"),
        Trouble("this user may not talk to {tool}'s daemon", "join the group `docker`, or set {tool} up rootless"),
    ),
    (
        ("Cannot connect to the Docker daemon", "Is the docker daemon running", "Cannot connect to Podman"),
        Trouble("{tool}'s daemon does not run", "start it (systemctl start docker), or point DOCKER_HOST at another"),
    ),
    (
        (
            "could not select device driver",
            "unknown or invalid runtime name: nvidia",
            "nvidia-container-cli",
            "unresolvable CDI devices",
            "setting up CDI devices",
            "error gathering device information",
        ),
        Trouble(
            "{tool} cannot give a GPU to a container",
            "install the NVIDIA Container Toolkit and make it known (docker: nvidia-ctk runtime configure; podman: "
            "nvidia-ctk cdi generate), or run without a GPU: --build cpu",
        ),
    ),
    (
        ("port is already allocated", "address already in use", "failed to bind host port"),
        Trouble("the port was taken in the meantime", "run it again: another port is chosen"),
    ),
    (
        ("no space left on device",),
        Trouble("there is no room for the image", "make room: `{tool} system df` shows what takes it"),
    ),
    (
        ("toomanyrequests", "pull rate limit"),
        Trouble("the registry allows no more pulls for now", "wait, or log in: {tool} login"),
    ),
    (
        ("no matching manifest", "does not match the specified platform", "exec format error"),
        Trouble("the image is not for this kind of CPU", "name an image for this machine's architecture"),
    ),
    (
        (
            "manifest unknown",
            "manifest for",
            "pull access denied",
            "repository does not exist",
            "requested access to the resource is denied",
            "unauthorized",
            "403 (Forbidden)",
            "denied: denied",
            "name unknown",
            "short-name",
            "invalid reference format",
        ),
        Trouble(
            "there is no such image, or it is not for everybody",
            "check name and tag (not every release or build has an image), or log in: {tool} login",
        ),
    ),
    (
        ("no such host", "i/o timeout", "TLS handshake timeout", "network is unreachable", "connection refused"),
        Trouble("the image's registry cannot be reached", "check network and proxy, or load the image from a file"),
    ),
    (
        ("executable file not found", "no such file or directory: unknown", "no such file or directory: OCI"),
        Trouble("the program of the engine is not in the image", "name an image of this engine: --container IMAGE"),
    ),
    (
        ("invalid mount config", "Mounts denied", "is not shared from the host", "error mounting"),
        Trouble("a folder of this machine cannot be mounted", "share it with {tool}, or set TMPDIR to another"),
    ),
)


def trouble(output: str, tool: str) -> Trouble | None:
    """What an output of docker or podman means, the most specific cause first; ``None`` when it is not known."""
    text = output.lower()
    found = next((meaning for signs, meaning in _TABLE if any(sign.lower() in text for sign in signs)), None)
    return Trouble(*(word.format(tool=tool) for word in found)) if found else None


def last_lines(output: str, count: int = 5) -> tuple[str, ...]:
    """The last lines that say something."""
    return tuple(_saying(output))[-count:]


def _saying(output: str) -> Iterator[str]:
    for line in output.splitlines():
        text = line.strip()
        if text and not text.startswith(("Run 'docker", "See 'docker")):
            yield redact_text(text)

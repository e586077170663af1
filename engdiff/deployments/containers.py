"""The containers of a docker compose or Kubernetes file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from engdiff.deployments import compose, kubernetes
from engdiff.deployments.container import Container
from engdiff.deployments.fields import Reader
from engdiff.deployments.yaml_file import Block, load
from engdiff.errors import DeploymentUnreadable


def containers(path: Path, environment: Mapping[str, str]) -> tuple[Container, ...]:
    """Every container, in the file's order; ``environment`` fills docker compose's ``${NAME}``.

    Raises :class:`~engdiff.errors.DeploymentUnreadable` with the line.
    """
    reader = Reader(path)
    found = tuple(c for document in load(path) for c in _of(document, reader, environment))
    if not found:
        raise DeploymentUnreadable(
            path,
            "neither docker compose nor a Kubernetes object with containers",
            "a compose file has `services:`; a Deployment, Job, Pod and the like have `containers:` below `spec:`",
        )
    return found


def _of(document: Block, reader: Reader, environment: Mapping[str, str]) -> Iterator[Container]:
    if "kind" in document or "apiVersion" in document:
        return kubernetes.containers(document, reader)
    if "services" in document:
        return compose.containers(document, reader, environment)
    return iter(())

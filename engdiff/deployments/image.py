"""The name of a container image, in its parts, and what its tag says of a version."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from engdiff.deployments.told import told

MOVING = ("latest", "nightly", "dev", "main", "master", "stable", "edge", "devel")
"""Tags (or their beginnings, before a dash) that name another build every day."""

RELEASE = re.compile(r"v?(?P<version>\d+\.\d+\.\d+(?:\.\d+)*(?:rc\d+)?(?:\.post\d+)?)(?=$|[-_+])")
"""``v0.11.0``, ``0.5.3.post1-cu126``, ``1.2.0rc4``: not ``25.09``, which is the month of a container."""


@dataclass(frozen=True)
class Image:
    """``registry.example:5000/vllm/vllm-openai:v0.11.0@sha256:…`` in its parts; what is not there is empty."""

    repository: str
    tag: str
    digest: str

    @property
    def name(self) -> str:
        """The last part of the repository: ``vllm-openai``."""
        return self.repository.rpartition("/")[2]

    @property
    def owner(self) -> str:
        """The part before it, without the registry where there are more: ``vllm``."""
        return self.repository.rpartition("/")[0].rpartition("/")[2]


def parse(image: str) -> Image:
    """The parts; a colon before the last slash belongs to the registry's port."""
    rest, _, digest = image.strip().partition("@")
    folder, slash, last = rest.rpartition("/")
    name, _, tag = last.partition(":")
    return Image(f"{folder}{slash}{name}".lower(), tag, digest)


def release(image: Image, title: str, is_official: Callable[[Image], bool]) -> tuple[str | None, str]:
    """The version that an official image's tag names, and where it is from; ``None`` with the reason otherwise."""
    if not image.repository:
        return None, "the file names no image"
    if not is_official(image):
        return (
            None,
            f"`{told(image.repository)}` is not an image of {title}: its tag need not be a version of the engine",
        )
    if not image.tag:
        return (
            None,
            "the image is named by a digest alone" if image.digest else "the image has no tag: it is the latest",
        )
    if image.tag.split("-")[0].lower() in MOVING:
        return None, f"the image's tag `{told(image.tag)}` moves"
    match = RELEASE.match(image.tag)
    if match is None:
        return None, f"the image's tag `{told(image.tag)}` names no release"
    return match["version"], f"the image's tag `{told(image.tag)}`"

"""The containers of Kubernetes objects: of anything that has a list ``containers`` below its ``spec``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from engdiff.deployments.container import Container
from engdiff.deployments.fields import Reader
from engdiff.deployments.references import expand
from engdiff.deployments.told import told
from engdiff.deployments.yaml_file import Block, Value
from engdiff.errors import DeploymentUnreadable

_BORING = ("spec", "template")
"""Steps of a path that say nothing."""

MAX_TOTAL = 6_000_000
"""Linux takes no more than 6 MiB of words and variables."""


def containers(document: Block, reader: Reader) -> Iterator[Container]:
    """Every container of an object, or of the objects of a list."""
    items = document.get("items")
    if isinstance(items, list):
        for item in items:
            if isinstance(item, Block):
                yield from containers(item, reader)
        return
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Block) else None
    owner = f"{_label(document.get('kind'))}/{_label(name)}"
    for key in _BORING:
        for found in _below(document.get(key), ()):
            yield _Found(found.block, f"{owner}: {found.place}", found.line).container(reader)


def _label(value: Value) -> str:
    return value if isinstance(value, str) and value else "?"


@dataclass(frozen=True)
class _Found:
    """A container's block and where it stands."""

    block: Block
    place: str
    line: int

    def container(self, reader: Reader) -> Container:
        """The block as a container."""
        variables = _Variables(reader)
        variables.read(self.block)
        notes: list[str] = []
        command = self._words("command", reader, variables, notes)
        arguments = self._words("args", reader, variables, notes) or ()
        if "storageUri" in self.block:
            notes.append(f"the model is fetched from {told(reader.text(self.block, 'storageUri'))}")
        return Container(
            name=reader.text(self.block, "name") or self.place.rpartition(": ")[2],
            image=reader.text(self.block, "image"),
            entrypoint=command,
            arguments=arguments,
            variables=variables.known,
            unknown_variables=variables.unknown,
            where=self.place,
            path=reader.path,
            line=self.line,
            notes=tuple(notes),
        )

    def _words(self, key: str, reader: Reader, variables: _Variables, notes: list[str]) -> tuple[str, ...] | None:
        """The words with ``$(NAME)`` filled; ``None`` where there are none: an empty list is the image's own too."""
        words: list[str] = []
        for word in reader.words(self.block, key):
            filled, missing = expand(word, variables.known)
            if filled is None or not variables.have_room(filled):
                raise reader.fault(self.block, key, "is longer than Linux takes", "shorten the variables")
            words.append(filled)
            notes.extend(f"`$({told(name)})` is kept as it is: {variables.why(name)}" for name in missing)
        return tuple(words) or None


def _below(value: Value, steps: tuple[str, ...]) -> Iterator[_Found]:
    """Containers below a value. Those that only prepare (``initContainers``) are none."""
    if isinstance(value, list):
        for item in value:
            yield from _below(item, steps)
    if not isinstance(value, Block):
        return
    for key, inner in value.items():
        if key == "containers" and isinstance(inner, list):
            for n, item in enumerate(inner):
                if isinstance(item, Block):
                    yield _Found(item, ".".join((*steps, f"containers[{n}]")), _line(item, value.lines[key]))
        elif key == "model" and isinstance(inner, Block) and _is_kserve_model(inner):
            yield _Found(inner, ".".join((*steps, key)), value.lines[key])
        elif key not in ("initContainers", "ephemeralContainers"):
            yield from _below(inner, steps if key in _BORING else (*steps, key))


def _is_kserve_model(block: Block) -> bool:
    """A KServe predictor's model is a container whose image is that of a runtime elsewhere."""
    return "modelFormat" in block and any(key in block for key in ("image", "command", "args"))


def _line(block: Block, otherwise: int) -> int:
    return min(block.lines.values(), default=otherwise)


@dataclass
class _Variables:
    """The environment of one container."""

    reader: Reader
    known: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    length: int = 0

    def have_room(self, text: str) -> bool:
        """Count a text in; false when variables and words together are more than a process can be given."""
        self.length += len(text)
        return self.length <= MAX_TOTAL

    def read(self, container: Block) -> None:
        """Take ``envFrom`` and ``env``; of a name that comes twice the last counts."""
        for source in self.reader.blocks(container, "envFrom"):
            self._whole_set(source)
        for entry in self.reader.blocks(container, "env"):
            name = self.reader.text(entry, "name")
            if not name:
                line = min(entry.lines.values(), default=container.lines["env"])
                raise DeploymentUnreadable(self.reader.path, "an item of `env` without a name", "give it a name", line)
            self._one(name, entry)

    def why(self, name: str) -> str:
        """Why a variable has no value here."""
        return self.unknown.get(name, "no such variable is set before it")

    def _one(self, name: str, entry: Block) -> None:
        before = dict(self.known) if "$(" in self.reader.text(entry, "value") else {}
        self.known.pop(name, None)
        self.unknown.pop(name, None)
        source = self.reader.block(entry, "valueFrom")
        if source:
            self.unknown[name] = _from(source)
            return
        value, missing = expand(self.reader.text(entry, "value"), before)
        if value is None or not self.have_room(value):
            raise self.reader.fault(entry, "value", "is longer than Linux takes", "shorten the variables")
        hidden = [other for other in missing if other in self.unknown]
        if hidden:
            self.unknown[name] = f"refers to {told(hidden[0])}: {self.unknown[hidden[0]]}"
        else:
            self.known[name] = value

    def _whole_set(self, source: Block) -> None:
        for key, kind in (("configMapRef", "configMap"), ("secretRef", "secret")):
            if isinstance(reference := source.get(key), Block):
                name = f"envFrom {kind} {told(self.reader.text(reference, 'name') or '?')}"
                self.unknown[name] = "its variables are not in this file: give them with --env"


def _from(source: Block) -> str:
    """Where a variable's value is, in words."""
    for key, kind in (("secretKeyRef", "secret"), ("configMapKeyRef", "configMap")):
        if isinstance(reference := source.get(key), Block):
            return f"from {kind} {_told(reference, 'name')} key {_told(reference, 'key')}"
    for key, part, kind in (("fieldRef", "fieldPath", "field"), ("resourceFieldRef", "resource", "resource")):
        if isinstance(reference := source.get(key), Block):
            return f"from the pod's {kind} {_told(reference, part)}"
    return "from a place that this engdiff does not know"


def _told(block: Block, key: str) -> str:
    value = block.get(key)
    return told(value) if isinstance(value, str) and value else "?"

"""The services of a docker compose file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from engdiff.deployments.container import Container
from engdiff.deployments.fields import Reader
from engdiff.deployments.interpolate import Interpolation
from engdiff.deployments.told import told
from engdiff.deployments.yaml_file import Block, Value


def containers(document: Block, reader: Reader, environment: Mapping[str, str]) -> Iterator[Container]:
    """Every service."""
    services = reader.block(document, "services")
    included = ("`include`: other files are not read",) if "include" in document else ()
    for name in services:
        service = reader.block(services, name)
        yield _Service(name, service, reader, environment).container(services.lines[name], included)


class _Service:
    """One service while it is read."""

    def __init__(self, name: str, block: Block, reader: Reader, environment: Mapping[str, str]) -> None:
        self.name, self.block, self.reader = name, block, reader
        self.environment = environment
        self.fill = Interpolation(environment)

    def container(self, line: int, included: tuple[str, ...]) -> Container:
        """The service as a container."""
        image = self.fill.fill(self.reader.text(self.block, "image"))
        entrypoint, arguments = self._words("entrypoint"), self._words("command")
        variables, unknown = self._variables()
        missing = tuple(f"`{told(source)}` is kept as it is: {why}" for source, why in self.fill.missing.items())
        return Container(
            name=self.name,
            image=image,
            entrypoint=entrypoint,
            arguments=arguments or (),
            variables=variables,
            unknown_variables={**unknown, **self._env_files()},
            where=f"services.{self.name}",
            path=self.reader.path,
            line=line,
            notes=(*self._notes(), *missing, *included),
        )

    def _words(self, key: str) -> tuple[str, ...] | None:
        """A command as text or as a list; ``None`` where the image's own stays."""
        value = self.block.get(key)
        if value is None:
            return None
        if isinstance(value, str):
            return self.reader.split(self.block, key, self.fill.fill(value))
        return tuple(self.fill.fill(word) for word in self.reader.words(self.block, key))

    def _variables(self) -> tuple[dict[str, str], dict[str, str]]:
        """Known and unknown variables; a name without a value is that of the shell, in both ways of writing."""
        known: dict[str, str] = {}
        unknown: dict[str, str] = {}
        for name, value in self._assignments():
            known.pop(name, None)
            unknown.pop(name, None)
            if value is None:
                self._from_shell(name, known, unknown)
                continue
            own = Interpolation(self.environment)
            filled = own.fill(value)
            if own.missing:
                unknown[name] = "; ".join(f"`{told(source)}`: {why}" for source, why in own.missing.items())
            else:
                known[name] = filled
        return known, unknown

    def _assignments(self) -> Iterator[tuple[str, str | None]]:
        value = self.block.get("environment")
        if isinstance(value, list):
            for word in self.reader.words(self.block, "environment"):
                name, equals, text = word.partition("=")
                yield name, text if equals else None
            return
        block = self.reader.block(self.block, "environment")
        for name in block:
            yield name, None if block[name] is None else self.reader.text(block, name)

    def _from_shell(self, name: str, known: dict[str, str], unknown: dict[str, str]) -> None:
        if name in self.environment:
            known[name] = self.environment[name]
        else:
            unknown[name] = "comes from the shell that runs docker compose, and is not set in this one"

    def _env_files(self) -> dict[str, str]:
        value = self.block.get("env_file")
        items = value if isinstance(value, list) else [] if value is None else [value]
        return {
            f"env_file {told(self._file(item))}": "the file is not read: give its values with --env" for item in items
        }

    def _file(self, item: Value) -> str:
        if isinstance(item, Block):
            return self.reader.text(item, "path")
        return item if isinstance(item, str) else "?"

    def _notes(self) -> Iterator[str]:
        if "extends" in self.block:
            yield f"`extends` is not followed ({self._extended()}): what is inherited is missing"
        if profiles := self.block.get("profiles"):
            names = [told(p) for p in profiles if isinstance(p, str)] if isinstance(profiles, list) else []
            yield f"started with profile {' or '.join(names)} only" if names else "started with a profile only"
        if "build" in self.block and "image" not in self.block:
            yield "the image is built from a Dockerfile, which is not read"

    def _extended(self) -> str:
        value = self.block["extends"]
        if isinstance(value, str):
            return told(value)
        if not isinstance(value, Block):
            return "?"
        file, service = value.get("file"), value.get("service")
        parts = (Path(file).name if isinstance(file, str) else "", service if isinstance(service, str) else "")
        return told(" ".join(filter(None, parts))) or "?"

"""An engine that is read from logs and from running servers, and not launched yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from engdiff.engines.contract import Build, KnownProblem, LaunchPlan, LaunchRequest, Observed, Pin, PinStyle
from engdiff.environments.recipe import Recipe
from engdiff.errors import UsageError
from engdiff.machine import Machine
from engdiff.schema.capture import Capture


class Recorded:
    """Answers the questions about launching: with one sentence that says what works instead."""

    name: str
    title: str
    distributions: tuple[str, ...] = ()
    cpu_distributions: tuple[str, ...] = ()

    def _refuse(self) -> NoReturn:
        raise UsageError(
            f"launching {self.title} is not in this version",
            f"give its log (engdiff capture {self.name} --log FILE) or a running server (--attach URL)",
        )

    def build(self, machine: Machine, wanted: str | None) -> Build:  # noqa: ARG002
        """Refused."""
        self._refuse()

    def known_versions(self, distribution: str) -> tuple[str, ...]:  # noqa: ARG002
        """None that could be launched."""
        return ()

    def problem(self, version: str, distribution: str, machine: Machine) -> KnownProblem | None:  # noqa: ARG002
        """Refused."""
        self._refuse()

    def recipe(self, version: str, distribution: str, machine: Machine) -> Recipe:  # noqa: ARG002
        """Refused."""
        self._refuse()

    def plan(self, request: LaunchRequest) -> LaunchPlan:  # noqa: ARG002
        """Refused."""
        self._refuse()

    def capture(self, observed: Observed, base: Capture) -> Capture:  # noqa: ARG002
        """Refused."""
        self._refuse()

    def pin(self, key: str, old: Capture, new: Capture, style: PinStyle) -> Pin | None:  # noqa: ARG002
        """Nothing is known to pin it back yet."""
        return None

    def native_command(self, model: str, arguments: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002
        """Refused."""
        self._refuse()

"""The parts of a Capture that are known before the engine says a word: where, with what, and what was asked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from engdiff import __version__
from engdiff.engines.contract import LaunchPlan
from engdiff.environments.recipe import Environment as Installed
from engdiff.knowledge.gpus import Pretended
from engdiff.redact import redact_tree, redact_variables, redact_words
from engdiff.schema.capture import Admission, Capture, Device, Environment, Host, Identity, Launch, Runner
from engdiff.schema.values import Evidence, Known, Unknown, Value
from engdiff.sources.order import Order

NOT_STARTED = Unknown(because="the engine was not asked yet")
NO_COMMIT = Unknown(because="the package does not name its commit")


def base_capture(order: Order, plan: LaunchPlan, command: Sequence[str]) -> Capture:
    """Identity and launch, with the rest unknown. ``command`` is what was started, the container around it included."""
    notes = (*order.environment.notes, *_image_notes(order))
    return _bare(_identity(order), _launch(order, plan, command), NOT_STARTED).model_copy(update={"notes": notes})


def redacted(capture: Capture) -> Capture:
    """The capture without secrets."""
    return Capture.model_validate(redact_tree(capture.model_dump(mode="json")))


def _bare(identity: Identity, launch: Launch, unknown: Unknown) -> Capture:
    """Identity and launch; everything else is unknown for one reason."""
    return Capture(
        identity=identity,
        launch=launch,
        native={},
        settings={},
        instances=(),
        runner=Runner(name=unknown, because=unknown, attention_backend=unknown, candidates=unknown),
        admission=Admission(rule=unknown, preemption=unknown, settings=()),
        boot=(),
    )


def read_capture(engine: str, source: Literal["log", "attach"], because: str) -> Capture:
    """A capture of an engine that engdiff did not start; ``because`` says why machine and command are not known."""
    unknown = Unknown(because=because)
    identity = Identity(
        engine=engine,
        version=unknown,
        commit=unknown,
        source=source,
        captured_at=_now(),
        engdiff_version=__version__,
        host=unknown,
        devices=(),
        driver=unknown,
        environment=unknown,
    )
    launch = Launch(
        model=None,
        model_given=None,
        arguments=(),
        command=(),
        native_command=(),
        variables={},
        unknown_because=because,
    )
    return _bare(identity, launch, unknown)


def simulated_capture(
    engine: str, version: str, launch: Launch, environment: Environment | Unknown, device: Pretended | None
) -> Capture:
    """A capture of an engine whose configuration code alone is run, with the rest unknown."""
    unknown = Unknown(because="nothing was started: the configuration was resolved, no more")
    identity = Identity(
        engine=engine,
        version=Known(value=version, evidence=Evidence(source="metadata", where=_named(environment, engine))),
        commit=NO_COMMIT,
        source="simulate",
        captured_at=_now(),
        engdiff_version=__version__,
        host=unknown,
        devices=_pretended(device) if device else (),
        driver=unknown,
        environment=environment,
    )
    return _bare(identity, launch, unknown)


def _named(environment: Environment | Unknown, engine: str) -> str:
    return engine if isinstance(environment, Unknown) else environment.distribution


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _pretended(device: Pretended) -> tuple[Device, ...]:
    gpu = device.gpu
    where = f"profiles/gpus/{gpu.key}.toml"
    memory = Known(value=gpu.memory_bytes, evidence=Evidence(source="rule", where=where))
    return (Device(kind="gpu", name=gpu.name, memory_bytes=memory),) * device.count


def _identity(order: Order) -> Identity:
    return Identity(
        engine=order.engine.name,
        version=_version(order),
        commit=NO_COMMIT,
        source="launch",
        captured_at=_now(),
        engdiff_version=__version__,
        host=_host(order),
        devices=_devices(order),
        driver=_driver(order),
        environment=_environment(order),
    )


def _version(order: Order) -> Value:
    environment, container = order.environment, order.container
    if container and container.image.interpreter is None:
        return Unknown(because=f"{container.reference} has no Python to ask, and its server did not say it")
    where = f"{environment.distribution} in {container.reference}" if container else environment.distribution
    return Known(value=environment.version, evidence=Evidence(source="metadata", where=where))


def _environment(order: Order) -> Environment | Unknown:
    environment, container = order.environment, order.container
    if container and container.image.interpreter is None:
        return Unknown(because=f"{container.reference} has no Python that could list what is installed there")
    return environment_of(environment, order.build.because)


def environment_of(environment: Installed, because: str) -> Environment:
    """Where the engine is installed, as a document holds it; ``because``: why this distribution."""
    return Environment(
        managed=environment.managed,
        python=environment.python_version,
        interpreter=str(environment.python),
        distribution=environment.distribution,
        distribution_because=because,
        packages=dict(environment.packages),
        notes=environment.notes,
    )


def _image_notes(order: Order) -> tuple[str, ...]:
    """The image by its content: a tag can be moved to another."""
    container = order.container
    return (f"run in {container.reference}, {container.identity}",) if container and container.identity else ()


def _launch(order: Order, plan: LaunchPlan, command: Sequence[str]) -> Launch:
    return Launch(
        model=order.model,
        model_given=order.model_given,
        arguments=redact_words(order.arguments),
        command=redact_words(command),
        native_command=redact_words(plan.native_command),
        variables=redact_variables(plan.read_variables),
        added_by_engdiff=dict(plan.added),
        image=order.image,
    )


def _host(order: Order) -> Host:
    machine = order.machine
    return Host(
        hostname=machine.hostname,
        os=machine.os,
        arch=machine.arch,
        kernel=machine.kernel,
        glibc=_stated(machine.glibc, "this is not a glibc system"),
        cpu=_stated(machine.cpu_model, "the system does not name its CPU"),
        cpu_count=machine.cpu_count,
        cpu_features=machine.cpu_features,
        memory_bytes=_stated(machine.memory_bytes, "the system does not state its memory"),
    )


def _stated(value: str | int | None, otherwise: str) -> Value:
    return (
        Unknown(because=otherwise)
        if value is None
        else Known(value=value, evidence=Evidence(source="machine", where="operating system"))
    )


def _devices(order: Order) -> tuple[Device, ...]:
    machine = order.machine
    if machine.gpus and order.uses_gpu:
        return tuple(
            Device(kind="gpu", name=g.name, memory_bytes=_stated(g.memory_bytes, "the driver does not say"))
            for g in machine.gpus
        )
    return (Device(kind="cpu", name=machine.cpu_model or "CPU", memory_bytes=_stated(machine.memory_bytes, "unknown")),)


def _driver(order: Order) -> Value:
    machine = order.machine
    if machine.gpus:
        return _stated(machine.gpus[0].driver, "the driver does not say")
    return Unknown(because=machine.gpus_unknown_because or "no GPU was found")

"""What is beside the findings: machines, packages, warnings."""

from __future__ import annotations

import pytest

from engdiff.diff.compare import compare
from engdiff.schema.capture import Capture
from engdiff.schema.diff import Diff
from engdiff.schema.values import Unknown
from tests import factories as make
from tests.factories import Change


def diff(old: Capture, new: Capture) -> Diff:
    return compare(old, new, old_label="old.json", new_label="new.json")


HOST = make.host()
NO_DRIVER = Unknown(because="x")

MACHINES: list[tuple[Change, list[tuple[str, str | None, str | None]]]] = [
    (make.with_identity(host=HOST.model_copy(update={"cpu": make.known("Other")})), [("CPU", "Example CPU", "Other")]),
    (make.with_identity(host=HOST.model_copy(update={"cpu_count": 8})), [("CPU count", "16", "8")]),
    (make.with_identity(host=HOST.model_copy(update={"glibc": make.known("2.31")})), [("glibc", "2.36", "2.31")]),
    (make.with_identity(driver=make.known("580.2")), [("driver", "570.1", "580.2")]),
    (make.with_identity(driver=NO_DRIVER), []),
    (make.with_environment(python="3.11.2"), [("Python", "3.12.1", "3.11.2")]),
    (make.with_identity(devices=make.llamacpp().identity.devices), [("devices", "Example GPU", None)]),
    (make.with_identity(devices=()), []),
    (
        make.with_identity(host=HOST.model_copy(update={"cpu_features": ("avx2", "amx")})),
        [("CPU features", "avx512f", "amx")],
    ),
    (make.with_identity(host=HOST.model_copy(update={"hostname": "other", "kernel": "6.8"})), []),
]


@pytest.mark.parametrize(("change", "expected"), MACHINES)
def test_machine(change: Change, expected: list[tuple[str, str | None, str | None]]) -> None:
    found = diff(make.vllm(), change(make.vllm()))
    assert [(m.name, m.old, m.new) for m in found.machine] == expected
    assert found.findings == ()


def test_packages_without_the_engine_itself() -> None:
    new = make.with_environment(packages={"vllm": "9", "torch": "2.14.0", "triton": "3.9.0"})(make.vllm())
    found = diff(make.vllm(), new)
    assert [(m.name, m.old, m.new) for m in found.packages] == [
        ("torch", "2.13.0", "2.14.0"),
        ("transformers", "5.19.0", None),
        ("triton", None, "3.9.0"),
    ]
    assert found.findings == ()


def test_warnings_without_numbers_and_paths() -> None:
    old = make.both(make.with_warning("took 12 s in /a/b"), make.with_warning("gone"))(make.vllm())
    new = make.both(
        make.with_warning("took 34 s in /c/d"), make.with_warning("fresh 1"), make.with_warning("bad", "error")
    )(make.vllm())
    found = diff(old, new)
    assert (found.warnings_new, found.warnings_gone) == (("fresh 1",), ("gone",))


def test_a_warning_with_the_name_of_its_function_is_the_same() -> None:
    old = make.with_warning("security: no key 1")(make.vllm())
    new = make.both(make.with_warning("srv init: security: no key 2"), make.with_warning("no key 3"))(make.vllm())
    assert (diff(old, new).warnings_new, diff(new, old).warnings_new) == ((), ())


def test_sides_say_what_was_compared() -> None:
    found = diff(make.vllm("0.30.0"), make.vllm())
    assert (found.old.label, found.old.version, found.new.version) == ("old.json", "0.30.0", "0.32.0")
    assert (found.new.model, found.new.started, found.new.source) == ("tiny", True, "launch")
    assert found.new.arguments == ("--max-model-len", "2048")

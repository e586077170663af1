"""Reading single members of a wheel: each is fetched once, and what is no wheel is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from engdiff.environments.wheel import NoWheelError
from tests.engines import wheels
from tests.engines.wheels import Wheel
from tests.environments.test_wheel import MEMBER, SOURCE, made_wheel


def test_each_file_is_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "en.whl").write_bytes(made_wheel())
    asked: list[str] = []

    def wheel_url(requirement: str) -> str:
        asked.append(requirement)
        return (tmp_path / "en.whl").as_uri()

    monkeypatch.setattr(wheels, "wheel_url", wheel_url)
    for _ in range(2):
        with Wheel("en", "1.0", tmp_path) as read:
            assert read.text(MEMBER) == SOURCE
            assert read.text("en/gone.py") is None
    assert asked == ["en==1.0"]


def test_what_is_no_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "en.whl").write_bytes(b"nothing")
    monkeypatch.setattr(wheels, "wheel_url", lambda what: (tmp_path / "en.whl").as_uri())
    with (
        pytest.raises(NoWheelError, match=r"the wheel of en==1\.0 cannot be read"),
        Wheel("en", "1.0", tmp_path) as read,
    ):
        read.text(MEMBER)

"""Whether a source defines an attribute: every way that engines define theirs, and what is said when it does not."""

from __future__ import annotations

import pytest

from tests.engines.attributes import Texts, missing
from tests.engines.probe_table import parsed, within

BASE = "class Base:\n    kept: int = 1\n    def start(self) -> None:\n        self.started = True\n"

ENGINE = Texts(
    {
        "en/core.py": """
from en.base import Base as Old
from en import base as modules
from .near import Near
from typing import Generic, NamedTuple
import en.config

if True:
    LIMIT = 1
try:
    from en.fast import quick
except ImportError:
    quick = None
STATED: int

class Core(Old, Generic[T]):
    field: int
    plain = 2
    a = b = 3
    def method(self): ...
    @property
    def shown(self): ...
    def later(this, other):
        this.bound = 1
        this.first, (this.second, *this.rest) = 1, (2, 3)
        this.stated: int = 4
        with open("x") as this.file:
            pass
        for this.step in ():
            pass
        other.not_ours = 1
        this.deep.leaf = 1

class Deep(Core): ...
class Far(modules.Base): ...
class Close(Near[int]): ...
class Row(NamedTuple):
    column: int
class Loop(Loop): ...
""",
        "en/base/__init__.py": "from en.base.real import Base\n",
        "en/base/real.py": BASE,
        "en/near.py": BASE.replace("Base", "Near"),
    }
)


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        ("", "LIMIT"), ("", "quick"), ("", "STATED"), ("", "Core"), ("", "Old"),
        ("Core", "field"), ("Core", "plain"), ("Core", "b"), ("Core", "method"), ("Core", "shown"),
        ("Core", "bound"), ("Core", "first"), ("Core", "second"), ("Core", "rest"), ("Core", "stated"),
        ("Core", "file"), ("Core", "step"), ("Core", "kept"), ("Core", "started"),
        ("Deep", "bound"), ("Deep", "started"), ("Far", "kept"), ("Close", "started"), ("Row", "column"),
        ("Old", "kept"),
    ],
)  # fmt: skip
def test_defined(owner: str, name: str) -> None:
    assert missing(ENGINE, "en/core.py", owner, name) is None


@pytest.mark.parametrize(
    ("path", "owner", "name", "why"),
    [
        ("en/core.py", "Core", "not_ours", "Core.not_ours is not defined in en/core.py"),
        ("en/core.py", "Core", "leaf", "Core.leaf is not defined in en/core.py"),
        ("en/core.py", "Core", "other", "Core.other is not defined in en/core.py"),
        ("en/core.py", "Loop", "x", "Loop.x is not defined in en/core.py"),
        ("en/core.py", "Gone", "x", "there is no class Gone in en/core.py"),
        ("en/core.py", "", "bound", "bound is not defined in en/core.py"),
        ("en/gone.py", "Core", "x", "there is no en/gone.py"),
    ],
)
def test_missing(path: str, owner: str, name: str, why: str) -> None:
    assert missing(ENGINE, path, owner, name) == why


@pytest.mark.parametrize(
    ("places", "field", "version", "wrong"),
    [
        ([{"class": "Core"}], {"name": "plain"}, "1.0.0", []),
        ([{"class": "Core"}], {"name": "gone"}, "1.0.0", ["X.gone: Core.gone is not defined in en/core.py"]),
        ([{"class": "Core"}], {"name": "gone", "until": "0.9"}, "1.0.0", []),
        ([{"class": "Core"}], {"name": "plain", "until": "0.9"}, "1.0.0",
         ["X.plain is defined, and the table says: first to 0.9"]),
        ([{"class": "Core"}, {"class": "Far"}], {"name": "kept"}, "1.0.0", []),
        ([{"class": "Core"}, {"class": "Far"}], {"name": "plain"}, "1.0.0",
         ["X.plain: Far.plain is not defined in en/core.py"]),
        ([{"class": "Core"}, {"class": "Far", "until": "0.9"}], {"name": "plain"}, "1.0.0", []),
        ([{"class": "Core", "since": "2"}], {"name": "plain"}, "1.0.0",
         ["X.plain: the table knows no place of X in this release"]),
        ([{"class": "Core"}, {"file": "en/near.py", "class": "Near"}], {"name": "plain", "only": ["Core"]}, "1.0.0",
         []),
    ],
)  # fmt: skip
def test_a_table_against_a_release(
    places: list[dict[str, str]], field: dict[str, str], version: str, wrong: list[str]
) -> None:
    rows = [{"file": "en/core.py", **place} for place in places]
    data = {
        "package": "en",
        "distributions": [],
        "variables": {},
        "object": [{"name": "X", "places": rows, "fields": [field]}],
    }
    assert list(parsed(data).wrong(ENGINE, version)) == wrong


@pytest.mark.parametrize(
    ("version", "since", "until", "inside"),
    [
        ("0.5.12", None, None, True),
        ("0.5.12", "0.5.12", "0.5.12", True),
        ("0.5.12.post1", "0.5.12", "0.5.12", True),
        ("0.5.12", "0.5.12.post1", None, False),
        ("0.5.12.post1", "0.5.12.post1", None, True),
        ("0.5.12.post2", None, "0.5.12.post1", False),
        ("0.5.13", "0.5.12.post1", "0.5.13", True),
        ("0.5.11", "0.5.12", None, False),
        ("0.5.13", None, "0.5.12", False),
    ],
)
def test_ranges(version: str, since: str | None, until: str | None, inside: bool) -> None:
    assert within(version, since, until) == inside


def test_several_ranges_of_one_attribute() -> None:
    fields = [{"name": "plain", "until": "0.9"}, {"name": "plain", "since": "1.1"}]
    place = {"file": "en/core.py", "class": "Core"}
    data = {
        "package": "en",
        "distributions": [],
        "variables": {},
        "object": [{"name": "X", "places": [place], "fields": fields}],
    }
    assert list(parsed(data).wrong(ENGINE, "0.8")) == list(parsed(data).wrong(ENGINE, "1.1")) == []
    assert list(parsed(data).wrong(ENGINE, "1.0")) == [
        "X.plain is defined, and the table says: first to 0.9, 1.1 to newest"
    ]


@pytest.mark.parametrize(("name", "given"), [("given", True), ("named", True), ("read", False)])
def test_what_a_file_gives_from_outside(name: str, given: bool) -> None:
    texts = Texts({"en/set.py": "def f(x):\n    x.given = 1\n    return x.read, ('named',)\n"})
    assert (missing(texts, "en/set.py", "*", name) is None) == given

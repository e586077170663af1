"""The file of accepted differences."""

from __future__ import annotations

from pathlib import Path

import pytest

from engdiff.diff.accept import Acceptance, load_acceptances, unused
from engdiff.diff.compare import compare
from engdiff.errors import DocumentError, UsageError
from engdiff.schema.diff import Diff
from tests import factories as make


def diff(*accept: Acceptance) -> Diff:
    changes = make.both(
        make.with_setting("scheduler.max_num_seqs", make.setting(128)),
        make.with_setting("scheduler.max_num_batched_tokens", make.setting(4096)),
        make.with_setting("kv.block_size", make.setting(32)),
    )
    return compare(make.vllm(), changes(make.vllm()), old_label="a", new_label="b", accept=accept)


@pytest.mark.parametrize(
    ("acceptance", "accepted"),
    [
        (Acceptance("kv.block_size", "planned"), {"kv.block_size"}),
        (
            Acceptance("scheduler.*", "planned"),
            {"scheduler.max_num_seqs", "scheduler.max_num_batched_tokens"},
        ),
        (Acceptance("scheduler.max_num_?eqs", "planned"), {"scheduler.max_num_seqs"}),
        (
            Acceptance("*", "planned", kind="DefaultMoved"),
            {"kv.block_size", "scheduler.max_num_seqs", "scheduler.max_num_batched_tokens"},
        ),
        (Acceptance("kv.block_size", "planned", kind="PoolGrew"), set()),
        (Acceptance("kv.block", "planned"), set()),
        (Acceptance("KV.block_size", "planned"), set()),
    ],
)
def test_covers(acceptance: Acceptance, accepted: set[str]) -> None:
    found = diff(acceptance)
    assert {a.finding.key for a in found.accepted} == accepted
    assert {a.reason for a in found.accepted} <= {"planned"}
    assert len(found.findings) + len(found.accepted) == 3
    assert not accepted & {f.key for f in found.findings}


def test_the_first_reason_counts() -> None:
    found = diff(Acceptance("kv.*", "first"), Acceptance("kv.block_size", "second"))
    assert [a.reason for a in found.accepted] == ["first"]


def test_what_is_accepted_is_not_pinned() -> None:
    assert "--block-size" in (diff().pinned_command or "")
    assert "--block-size" not in (diff(Acceptance("kv.block_size", "planned")).pinned_command or "")


def test_load(tmp_path: Path) -> None:
    path = tmp_path / "accept.toml"
    path.write_text('[[accept]]\nkey = "a"\nreason = "b"\n[[accept]]\nkey = "c.*"\nkind = "PoolGrew"\nreason = "d"\n')
    assert load_acceptances(path) == (Acceptance("a", "b"), Acceptance("c.*", "d", "PoolGrew"))


def test_an_empty_file_accepts_nothing(tmp_path: Path) -> None:
    path = tmp_path / "accept.toml"
    path.write_text("")
    assert load_acceptances(path) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[accept", "not TOML"),
        ("accept = 1", "`accept` is not a list of tables"),
        ('[accept]\nkey = "a"\nreason = "b"', "`accept` is not a list of tables"),
        ('[[acept]]\nkey = "a"\nreason = "b"', "unknown key `acept`"),
        ("accept = [1]", "entry 1: every value is a text"),
        ('[[accept]]\nkey = 1\nreason = "b"', "entry 1: every value is a text"),
        ('[[accept]]\nkey = "a"\nreason = "b"\nuntil = "c"', "entry 1: unknown field `until`"),
        ('[[accept]]\nkey = "a"', "entry 1: `key` and `reason` are required"),
        ('[[accept]]\nreason = "a"', "entry 1: `key` and `reason` are required"),
        ('[[accept]]\nkey = "a"\nreason = ""', "entry 1: `key` and `reason` are required"),
        ('[[accept]]\nkey = "a"\nreason = "b"\n[[accept]]\nkey = "a"', "entry 2: `key` and `reason` are required"),
    ],
)
def test_load_names_the_entry(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "accept.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_acceptances(path)
    assert str(path) in caught.value.message
    assert message in caught.value.message
    assert caught.value.advice


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="no such file"):
        load_acceptances(tmp_path / "none.toml")


def test_entries_that_accept_nothing_are_known() -> None:
    acceptances = (Acceptance("kv.pool_bytes", "planned"), Acceptance("gone.*", "long ago"))
    found = compare(
        make.llamacpp(), make.llamacpp(cells=4096), old_label="a", new_label="b", style="flags", accept=acceptances
    )
    assert [a.key for a in unused(acceptances, found)] == ["gone.*"]

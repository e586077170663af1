"""What only shows when the pieces meet: llama.cpp's pool, several pools and ranks, causes, ways back, proofs."""

from __future__ import annotations

import pytest

from engdiff.diff.compare import compare
from engdiff.redact import REDACTED
from engdiff.schema.capture import Capture, Pool, Process
from engdiff.schema.diff import Diff
from engdiff.schema.values import Unknown
from tests import factories as make
from tests.diff.fake_engine import change, use
from tests.factories import GIB, MIB, Change

Key = tuple[str, str, str, bool]
"""Kind, key, area, asked."""

UNKNOWN = Unknown(because="not said")


def diff(old: Capture, new: Capture, **more: str) -> Diff:
    return compare(old, new, **{"old_label": "old.json", "new_label": "new.json", **more})  # type: ignore[arg-type]


def keys(found: Diff) -> list[Key]:
    return [(f.kind, f.key, f.area, f.asked) for f in found.findings]


def written(word: str, key: str, value: int) -> Change:
    """The user wrote ``word value`` and the engine took it."""
    return make.both(
        make.with_launch(arguments=("-np", "4", word, str(value))),
        make.with_setting(key, make.setting(value, "user", asked=value, word=word)),
    )


SHRUNK = make.with_pool(bytes=make.measured(MIB), tokens=make.known(1024))

LLAMACPP: list[tuple[str, Capture, Change, list[Key]]] = [
    (
        "more context for each slot: the cause goes with the pool",
        make.llamacpp(cells=4096),
        lambda c: c,
        [
            ("PoolGrew", "kv.pool_bytes", "memory", False),
            ("DerivedMoved", "model.context_total", "memory", False),
            ("DerivedMoved", "model.max_model_len", "scheduling", False),
        ],
    ),
    (
        "asked for: what follows was asked for as well",
        make.llamacpp(cells=4096),
        written("-c", "model.context_total", 16384),
        [
            ("PoolGrew", "kv.pool_bytes", "memory", True),
            ("SettingChanged", "model.context_total", "memory", True),
            ("DerivedMoved", "model.max_model_len", "scheduling", True),
        ],
    ),
    (
        "a pool that shrank for no known cause",
        make.llamacpp(),
        SHRUNK,
        [("PoolShrank", "kv.pool_bytes", "memory", False)],
    ),
    ("a pool whose size is not known", make.llamacpp(), make.with_pool(bytes=UNKNOWN), []),
    (
        "the cache itself is told by its pool",
        make.llamacpp(),
        make.with_term("KV cache", make.measured(9 * GIB)),
        [],
    ),
    (
        "weights",
        make.llamacpp(),
        make.with_term("weights", make.measured(50 * MIB)),
        [("MemoryMoved", "memory.weights", "memory", False)],
    ),
    (
        "a default",
        make.llamacpp(),
        make.with_setting("server.timeout_seconds", make.setting(3600)),
        [("DefaultMoved", "server.timeout_seconds", "cosmetic", False)],
    ),
    (
        "overruled",
        make.llamacpp(),
        make.with_setting("scheduler.max_num_seqs", make.setting(1, "forced", asked=4, word="-np")),
        [("PolicyForced", "scheduler.max_num_seqs", "scheduling", False)],
    ),
    (
        "overruled on both sides is no news",
        make.with_setting("scheduler.max_num_seqs", make.setting(4, "forced", asked=8))(make.llamacpp()),
        make.with_setting("scheduler.max_num_seqs", make.setting(4, "forced", asked=8)),
        [],
    ),
]


@pytest.mark.parametrize(("new", "change", "expected"), [row[1:] for row in LLAMACPP], ids=[row[0] for row in LLAMACPP])
def test_llamacpp(new: Capture, change: Change, expected: list[Key]) -> None:
    found = diff(make.llamacpp(), change(new))
    assert keys(found) == expected
    if found.findings and found.findings[0].asked:
        assert found.pinned_command is None


# --- several pools --------------------------------------------------------------------------------------------------


def with_pools(capture: Capture, *pools: Pool) -> Capture:
    return make.with_rank(capture.instances[0].ranks[0].model_copy(update={"pools": pools}))(capture)


def test_a_second_pool_has_a_key_of_its_own() -> None:
    a, b = make.llama_pool(4, 1024, 1024), make.llama_pool(4, 4096, 1024)
    found = diff(with_pools(make.llamacpp(), a, a), with_pools(make.llamacpp(), a, b))
    assert [f.key for f in found.findings] == ["kv.pool_bytes[pool 1]"]
    assert len(found.waterfalls) == 1


def test_requests_that_fit_are_told_for_each_pool() -> None:
    a, b = (make.llama_pool(4, 1024, 1024).model_copy(update={"max_concurrency": make.known(n)}) for n in (4, 2))
    found = diff(with_pools(make.llamacpp(), a, a), with_pools(make.llamacpp(), b, b))
    assert [(f.kind, f.key) for f in found.findings] == [
        ("ConcurrencyMoved", "kv.max_concurrency"),
        ("ConcurrencyMoved", "kv.max_concurrency[pool 1]"),
    ]


def test_a_pool_that_only_one_side_has_is_compared_with_nothing() -> None:
    a, b = make.llama_pool(4, 1024, 1024), make.llama_pool(4, 4096, 1024)
    assert diff(with_pools(make.llamacpp(), a), with_pools(make.llamacpp(), a, b)).findings == ()


# --- causes ---------------------------------------------------------------------------------------------------------


def test_a_cause_is_always_a_finding() -> None:
    """The bytes of a token moved, and the setting that would decide them did not: nothing is named as the cause."""
    found = diff(make.llamacpp(), make.llamacpp(per_token=2048))
    assert [f.key for f in found.findings] == ["kv.pool_bytes"]
    assert found.findings[0].follows_from == ()


def test_a_pool_follows_from_the_size_it_was_given() -> None:
    old = make.with_setting("kv.configured_bytes", make.setting(52 * GIB, "derived"))(make.vllm())
    new = make.both(
        make.with_setting("kv.configured_bytes", make.setting(40 * GIB, "derived")),
        make.with_pool(bytes=make.measured(40 * GIB)),
    )(make.vllm())
    pool = next(f for f in diff(old, new).findings if f.key == "kv.pool_bytes")
    assert pool.follows_from == ("kv.configured_bytes",)


def test_processes_follow_from_the_executor() -> None:
    one = Process(name="server", parent=None, threads=UNKNOWN, steps=("http", "execute"))
    old = make.with_setting("parallel.executor", make.setting("mp", "derived"))(make.vllm())
    new = make.both(make.with_processes(one), make.with_setting("parallel.executor", make.setting("uni", "derived")))(
        make.vllm()
    )
    found = {f.key: f for f in diff(old, new).findings}
    assert found["processes"].follows_from == ("parallel.executor",)
    assert found["processes"].pin.text == found["parallel.executor"].pin.text


def test_a_pool_that_shrank_has_no_pin_since_the_memory_may_not_be_there() -> None:
    flag = make.with_native("flags.kv_cache_memory_bytes", {"names": ["--kv-cache-memory-bytes"], "takes": "value"})
    shrunk = make.both(flag, make.with_pool(bytes=make.measured(40 * GIB)))
    (pool,) = diff(make.vllm(), shrunk(make.vllm())).findings
    assert (pool.kind, pool.pin.text) == ("PoolShrank", None)
    size = 52 * GIB
    assert pool.pin.because == f"--kv-cache-memory-bytes {size} forces the old size, where the memory for it is there"
    (grown,) = diff(shrunk(make.vllm()), flag(make.vllm())).findings
    assert (grown.kind, grown.pin.text) == ("PoolGrew", f"--kv-cache-memory-bytes {40 * GIB}")


# --- ways back ------------------------------------------------------------------------------------------------------


def test_a_way_back_has_no_known_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables say what an upgrade does; a downgrade is compared all the same, without an account."""
    row = change("example_config.example_option", summary="it grew", pin="--x {old}", area="memory")
    use(monkeypatch, changes={"change": [row]})
    leaf = make.with_native("config.example_config.example_option", "new")
    up = diff(make.vllm("0.30.0"), leaf(make.vllm("0.32.0"))).findings
    down = diff(make.vllm("0.32.0"), leaf(make.vllm("0.30.0"))).findings
    assert [(f.explained, f.area) for f in up] == [(True, "memory")]
    assert [(f.explained, f.since) for f in down] == [(False, None)]


def test_a_version_that_is_not_known_has_no_known_change(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, changes={"change": [change("example_config.example_option")]})
    new = make.both(
        make.with_native("config.example_config.example_option", "new"), make.with_identity(version=UNKNOWN)
    )(make.vllm())
    (found,) = diff(make.vllm("0.30.0"), new).findings
    assert not found.explained


# --- proofs ---------------------------------------------------------------------------------------------------------


SEQS = make.with_setting("scheduler.max_num_seqs", make.setting(128))


def test_a_pin_replaces_the_variable_that_the_user_set(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, noise={"areas": {"variables": "kernels"}})
    old = make.with_native("variables.VLLM_EXAMPLE", "0")(make.vllm())
    found = diff(old, make.both(SEQS, make.with_launch(variables={"VLLM_EXAMPLE": "1"}))(make.vllm()))
    assert (found.pinned_command or "").startswith("VLLM_EXAMPLE=0 vllm serve ")
    assert (found.pinned_command or "").endswith(" --max-num-seqs 256")


def test_variables_of_a_proof_hold_over_those_of_the_old_capture() -> None:
    """`engdiff diff old.json ENGINE` takes over the old variables; only --env goes before them."""
    old = make.with_launch(variables={"VLLM_X": "1"})(make.vllm())
    found = diff(old, make.both(SEQS, make.with_launch(variables={"VLLM_X": "2"}))(make.vllm()))
    assert "--env VLLM_X=2 --" in (found.prove_command or "")


def test_a_proof_pins_the_new_side_alone() -> None:
    """Words after -- go to both where both are launched, and the old version may know no such flag."""
    old = make.with_launch(variables={"VLLM_X": "1", "HF_TOKEN": REDACTED})(make.vllm("0.30.0"))
    found = compare(old, SEQS(make.vllm()), old_label="vllm@0.30.0", new_label="vllm@0.32.0", old_launched=True)
    assert found.prove_command == (
        "engdiff capture vllm@0.30.0 --model tiny --env VLLM_X=1 -- --max-model-len 2048 | "
        "engdiff diff - vllm@0.32.0 --model tiny -- --max-model-len 2048 --max-num-seqs 256"
    )


def test_the_same_two_in_any_process() -> None:
    """Nothing in a Diff depends on the order of a set."""
    old = make.vllm()
    new = make.both(
        SEQS, make.with_term("weights", make.measured(20 * GIB)), make.with_term("activation peak", make.measured(GIB))
    )(old)
    assert [f.key for f in diff(old, new).findings] == [
        "memory.activation_peak",
        "memory.weights",
        "scheduler.max_num_seqs",
    ]

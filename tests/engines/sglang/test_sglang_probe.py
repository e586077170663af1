"""Where the probe finds the place of a scheduler in the grid, by version."""

from __future__ import annotations

import sys
from types import SimpleNamespace as Object

import pytest

from engdiff.engines.sglang import probe

CONTEXT = "sglang.srt.runtime_context"


class Unwritten:
    """A context of the process in which one rank was never written: reading it raises, as SGLang's does."""

    dp_rank, pp_rank, tp_rank = None, 1, 3

    @property
    def attn_dp_rank(self) -> int:
        raise RuntimeError("parallel name 'attn_dp_rank' has not been written in this process")


@pytest.mark.parametrize(
    ("held", "context", "name"),
    [
        pytest.param(Object(tp_rank=2, pp_rank=0, dp_rank=None, attn_dp_rank=1), None, "dp1-pp0-tp2", id="to 0.5.12"),
        pytest.param(Object(ps=Object(tp_rank=2, pp_rank=1, dp_rank=0)), Unwritten(), "dp0-pp1-tp2", id="to 0.5.20"),
        pytest.param(Object(), Unwritten(), "dp0-pp1-tp3", id="from 0.5.21"),
        pytest.param(Object(), None, "dp0-pp0-tp0", id="nowhere"),
    ],
)
def test_rank(held: Object, context: object, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if context is not None:
        monkeypatch.setitem(sys.modules, CONTEXT, Object(get_parallel=lambda: context))
    assert probe.rank_name(held) == name

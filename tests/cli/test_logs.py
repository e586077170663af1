"""A log wherever a capture may stand: by name, on standard input, several at once, with restarts in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engdiff.schema.capture import Capture
from engdiff.schema.files import parse
from engdiff.schema.values import number, plain
from tests.cli.conftest import Call


def boot(gib: str, tokens: str, at: str = "00:00:01", version: str = "0.24.0") -> str:
    return (
        f"(APIServer pid=1) INFO 01-01 {at} [api_server.py:1] vLLM API server version {version}\n"
        f"(APIServer pid=1) INFO 01-01 {at} [utils.py:1] non-default args: {{'model': 'm/x', 'max_model_len': 8192, "
        f"'api_key': ['sesame-42']}}\n"
        f"(EngineCore pid=2) INFO 01-01 {at} [gpu_worker.py:508] Available KV cache memory: {gib} GiB\n"
        f"(EngineCore pid=2) INFO 01-01 {at} [kv_cache_utils.py:2146] GPU KV cache size: {tokens} tokens\n"
        f"(EngineCore pid=2) INFO 01-01 {at} [kv_cache_utils.py:2147] "
        f"Maximum concurrency for 8,192 tokens per request: {int(tokens.replace(',', '')) / 8192:.2f}x\n"
    )


READY = "(APIServer pid=1) INFO:     Application startup complete.\n"
OLD, NEW = boot("20.00", "163,840") + READY, boot("10.00", "81,920", version="0.25.0") + READY


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for name, text in (("old.log", OLD), ("new.log", NEW), ("twice.log", OLD + NEW.replace(READY, ""))):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def captured(text: str) -> Capture:
    return parse(text, "output", Capture)


def pool(capture: Capture) -> float | None:
    (found,) = capture.instances[0].ranks[0].pools
    return number(found.tokens)


def test_a_log_becomes_a_capture(call: Call, logs: Path) -> None:
    ended = call("capture", "--log", "old.log")
    assert ended.code == 0
    made = captured(ended.out)
    assert (made.identity.engine, plain(made.identity.version), made.identity.source) == ("vllm", "0.24.0", "log")
    assert pool(made) == 163_840
    assert made.launch.model_given == "m/x"
    assert "sesame" not in ended.out


def test_a_pipe_of_logs(call: Call, logs: Path) -> None:
    """``kubectl logs pod | engdiff capture --log - | engdiff diff old.json -``."""
    assert call("capture", "--log", "old.log", "-o", "old.json").code == 0
    first = call("capture", "--log", "-", stdin=NEW)
    assert first.code == 0
    ended = call("diff", "old.json", "-", stdin=first.out)
    assert ended.code == 1
    assert "the KV cache shrank: 20 GiB → 10 GiB" in ended.out


@pytest.mark.parametrize("words", [("old.log", "new.log"), ("old.log", "-")])
def test_a_log_works_wherever_a_capture_does(call: Call, logs: Path, words: tuple[str, ...]) -> None:
    ended = call("diff", *words, stdin=NEW if "-" in words else "")
    assert ended.code == 1
    assert "the KV cache shrank: 20 GiB → 10 GiB" in ended.out
    assert call("diff", "old.log", "old.log").code == 0


def test_several_give_one_table(call: Call, logs: Path) -> None:
    ended = call("diff", "old.log", "old.log", "new.log")
    assert ended.code == 1
    assert "KV cache  20 GiB  20 GiB  →10 GiB" in ended.out
    document = json.loads(call("diff", "old.log", "old.log", "new.log", "--json").out)
    assert document["document"] == "series"
    assert len(document["sides"]) == 3
    assert call("diff", "old.log", "old.log", "old.log").code == 0


def test_of_several_starts_the_last_good_one_counts_and_others_are_offered(call: Call, logs: Path) -> None:
    made = captured(call("capture", "--log", "twice.log").out)
    assert pool(made) == 163_840
    assert made.reading is not None
    assert [(start.first_line, start.ended) for start in made.reading.starts] == [(1, "ready"), (7, "breaks off")]
    assert any("--start N" in note for note in made.notes)
    other = captured(call("capture", "--log", "twice.log", "--start", "2").out)
    assert pool(other) == 81_920
    ended = call("capture", "--log", "twice.log", "--start", "3")
    assert (ended.code, "the log holds 2 start(s)" in ended.err) == (2, True)


def test_streams_of_a_compose_file(call: Call, logs: Path) -> None:
    text = "".join(f"llm-1  | {line}\nweb-1  | GET /\n" for line in OLD.splitlines())
    text += "".join(f"other-1  | {line}\n" for line in NEW.splitlines()[:4])
    made = captured(call("capture", "--log", "-", stdin=text).out)
    assert pool(made) == 163_840
    assert any("other-1" in note for note in made.notes)
    assert pool(captured(call("capture", "--log", "-", "--source", "other-1", stdin=text).out)) == 81_920
    ended = call("capture", "--log", "-", "--source", "nobody", stdin=text)
    assert "its streams: llm-1, other-1" in ended.err


def test_show_reads_a_log(call: Call, logs: Path) -> None:
    ended = call("show", "old.log")
    assert ended.code == 0
    assert "163,840 tokens" in ended.out
    assert "sesame" not in ended.out


def test_no_escape_of_a_log_reaches_the_terminal(call: Call, logs: Path) -> None:
    text = (
        OLD.replace("m/x", "\x1b]0;gotcha\x07m/\x1b[31mx")
        + "(EngineCore pid=2) ERROR 01-01 00:00:01 [a.py:1] \x1b[2Jgone\n"
    )
    (logs / "evil.log").write_text(text, encoding="utf-8")
    assert call("show", "evil.log").code == 0  # the fixture refuses any escape

"""How TensorRT-LLM writes its log: the prefix of its lines; the lines themselves are in ``knowledge/log.toml``.

Two loggers write into one stream. The C++ runtime names neither time nor rank; the Python side names the rank when
there are several (tensorrt_llm/logger.py 0.5 to 1.2, cpp/tensorrt_llm/common/logger.h 0.8 to 1.2).
"""

from __future__ import annotations

import re
from io import BytesIO

from engdiff.logs.patterns import load
from engdiff.logs.reader import Reader
from engdiff.logs.starts import LogFormat, Start
from engdiff.logs.statements import Said

CARRIERS = (
    re.compile(r"^\[\d+,(?P<rank>\d{1,5})\]<std(?:out|err)>: ?"),  # mpirun --tag-output: job and rank
    re.compile(r"^ {0,4}(?P<rank>\d{1,5}): (?=\[TensorRT-LLM\]|\[\d\d/\d\d/\d{4}-)"),  # srun --label
    re.compile(r"^\([A-Za-z_][\w:.]{0,120} pid=\d+(?:, ip=[\d.]+)?\) ?"),  # Ray
)
"""What launchers of several ranks write before a line."""

CPP = re.compile(r"^\[TensorRT-LLM\]\[(?P<level>[A-Z]+)\](?:\[(?P<rank>\d+)\])? ?")

PYTHON = re.compile(
    r"^(?:\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] )?\[TRT-LLM\] "
    r"(?:\[(?:RANK|MPI_Rank|MPI rank) (?P<rank>\d+)\] )?\[(?P<level>[A-Z])\] ?"
    r"(?:\[[a-z_][a-z0-9_]{1,30}\](?:\[RANK (?P<module_rank>\d+)\])? ?)?"
)
"""Up to 1.2 the rank stands before the level; later a module and the rank stand after it, in C++ lines as well."""

RANK_ONLY = re.compile(r"^\[RANK (?P<rank>\d+)\] (?:\[(?P<level>[A-Z])\] )?")
"""What is left when somebody took time and name off before quoting."""

PRINTED = re.compile(r"^\[TensorRT-LLM\] (?=\S)")

FOREIGN = (
    re.compile(r"^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w.]+:\d+\] ?\"?"),  # Triton
    re.compile(r"^\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] \[TRT\] \[[A-Z]\] ?"),  # TensorRT itself
    re.compile(r"^(?:INFO|WARNING|ERROR): +(?=\S)"),  # uvicorn
    re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z +[A-Z]+ (?=[\w:.]+: )"),  # Dynamo
)
"""Loggers of others in the same stream: their lines are no continuation, and their level is not the engine's."""

LEVELS = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "FATAL", "V": "VERBOSE", "D": "DEBUG"}


def said(text: str) -> Said:
    """A line without its prefix. ``process`` is ``RANK n`` where the line names its rank among all ranks."""
    text, rank, carried = _carried(text)
    if match := CPP.match(text) or PYTHON.match(text) or RANK_ONLY.match(text):
        level = match["level"] or ""
        return Said(
            text=text[match.end() :],
            process=_process(match["rank"] or match.groupdict().get("module_rank") or rank),
            level=LEVELS.get(level, level) or None,
            prefixed=True,
        )
    if match := PRINTED.match(text) or next((m for p in FOREIGN if (m := p.match(text))), None):
        return Said(text=text[match.end() :], process=_process(rank), prefixed=True)
    return Said(text=text, process=_process(rank), prefixed=carried and not text.startswith((" ", "\t")))


def _carried(text: str) -> tuple[str, str | None, bool]:
    """The line without its launcher's mark, the rank in that mark, and whether there was one."""
    for pattern in CARRIERS:
        if match := pattern.match(text):
            return text[match.end() :], match.groupdict().get("rank"), True
    return text, None, False


def _process(rank: str | None) -> str:
    return "" if rank is None else f"RANK {int(rank)}"


FORMAT = LogFormat(
    lines=load("engdiff.engines.trtllm"),
    said=said,
    level_marks=("[TensorRT-LLM][WARNING]", "[TensorRT-LLM][ERROR]", "] [W] ", "] [E] ", "] [F] "),
)


def launched(log: str) -> Start:
    """The log of one launch, which is one start from its first line to its last, however often it says its version."""
    heard = Reader({ENGINE: FORMAT}).hear(BytesIO(log.encode("utf-8", "surrogatepass")))
    whole = Start(1, max(heard.lines, 1))
    for speech in heard.speeches.values():
        for start in speech.starts:
            whole.statements.extend(start.statements)
            whole.warnings.extend(start.warnings)
            whole.tail = start.tail
            whole.ready = whole.ready or start.ready
            whole.died = whole.died or start.died
    return whole


ENGINE = "trtllm"

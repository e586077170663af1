"""What users read, word by word: golden files. ENGDIFF_REGENERATE_GOLDEN=1 writes them anew; read the difference."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from engdiff.report.capture_terminal import print_capture
from engdiff.report.console import THEME, stderr, stdout
from engdiff.report.diff_github import diff_github
from engdiff.report.diff_markdown import diff_markdown
from engdiff.report.diff_terminal import print_diff
from engdiff.schema.diff import Diff, Finding, Pin, Side
from engdiff.schema.files import dump, parse
from tests.report.documents import (
    ADMISSION,
    BATCH,
    CAPTURES,
    COSMETIC,
    DIFFS,
    HARMLESS,
    NEW,
    OLD,
    PROCESSES,
    PRODUCT,
    UPGRADE,
)

GOLDEN = Path(__file__).parent / "golden"
WIDTHS = (60, 80, 100, 120)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def check(name: str, text: str) -> None:
    """Compare with the golden file, or write it."""
    path = GOLDEN / name
    if os.environ.get("ENGDIFF_REGENERATE_GOLDEN") == "1":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{path} differs; ENGDIFF_REGENERATE_GOLDEN=1 writes it anew"


def on_paper(width: int) -> tuple[Console, StringIO]:
    stream = StringIO()
    console = Console(
        file=stream, theme=THEME, width=width, highlight=False, emoji=False, markup=False, color_system=None
    )
    return console, stream


def terminal(diff: Diff, width: int, *, everything: bool = False) -> str:
    console, stream = on_paper(width)
    print_diff(diff, console, everything=everything)
    return stream.getvalue()


def shown(name: str, width: int, *, everything: bool = False) -> str:
    console, stream = on_paper(width)
    print_capture(CAPTURES[name], console, everything=everything)
    return stream.getvalue()


@pytest.mark.parametrize("width", WIDTHS)
def test_diff_on_a_terminal(width: int) -> None:
    check(f"diff-upgrade-{width}.txt", terminal(UPGRADE, width))


@pytest.mark.parametrize("name", ["nothing", "refused", "from-a-log", "still-refused"])
def test_short_diffs(name: str) -> None:
    check(f"diff-{name}-80.txt", terminal(DIFFS[name], 80))


def test_everything() -> None:
    check("diff-upgrade-all-80.txt", terminal(UPGRADE, 80, everything=True))


@pytest.mark.parametrize("name", CAPTURES)
def test_show(name: str) -> None:
    check(f"show-{name}-80.txt", shown(name, 80))


def test_show_everything() -> None:
    check("show-vllm-all-80.txt", shown("vllm", 80, everything=True))


@pytest.mark.parametrize("name", DIFFS)
def test_markdown(name: str) -> None:
    check(f"diff-{name}.md", diff_markdown(DIFFS[name]))


@pytest.mark.parametrize("name", DIFFS)
def test_github(name: str) -> None:
    check(f"diff-{name}.github.txt", diff_github(DIFFS[name]))


@pytest.mark.parametrize("name", DIFFS)
def test_json(name: str) -> None:
    text = dump(DIFFS[name])
    check(f"diff-{name}.json", text)
    assert parse(text, name, Diff) == DIFFS[name]


# --- what holds for every page ------------------------------------------------------------------------------------


def pages() -> Iterator[tuple[str, int, str, set[str]]]:
    for width in (*WIDTHS, 40):
        for everything in (False, True):
            for name, diff in {**DIFFS, "product": UPGRADE.model_copy(update={"waterfalls": (PRODUCT,)})}.items():
                told = [f for f in diff.findings if not f.asked and (everything or not minor(f))]
                pins = {f.pin.text for f in told if f.pin.text}
                copied = {c for c in (diff.pinned_command, diff.prove_command) if c} | pins
                yield f"diff {name}", width, terminal(diff, width, everything=everything), copied
            for name, capture in CAPTURES.items():
                command = {" ".join(capture.launch.native_command)}
                yield f"show {name}", width, shown(name, width, everything=everything), command


def minor(finding: Finding) -> bool:
    """Whether its pin is only told with everything else."""
    return finding.area == "cosmetic" and finding.explained


PAGES = list(pages())


@pytest.mark.parametrize(("name", "width", "text", "copied"), PAGES, ids=[f"{p[0]} {p[1]}" for p in PAGES])
def test_pages_are_tidy(name: str, width: int, text: str, copied: set[str]) -> None:
    lines = text.split("\n")
    wide = [line for line in lines if cell_len(line) > width and not any(c in line for c in copied)]
    assert wide == []
    assert [line for line in lines if line != line.rstrip()] == []
    assert "\n\n\n" not in text
    assert not text.startswith("\n")
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert [command for command in copied if command not in text] == []


def test_the_order_of_a_page() -> None:
    """The verdict, what costs, where the bytes went, what to type; only then the rest."""
    text = terminal(UPGRADE, 80)
    parts = [
        "things moved that nobody asked for",
        "  1 memory",
        "Where the bytes of",
        "The new version with every pin",
        "Prove it",
        "Moved, and engdiff has no account",
        "Cosmetic",
        "Asked for",
        "Accepted",
        "The machines differ",
        "14 packages moved",
        "New warnings",
        "Not compared",
        "Native configuration",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_a_long_pin_without_an_account_is_whole() -> None:
    pin = Pin(text="VLLM_EXAMPLE='" + "a b " * 30 + "'", style="env")
    text = terminal(with_findings(COSMETIC.model_copy(update={"pin": pin})), 60)
    assert f"     pin  {pin.text}" in text.splitlines()


def test_log_lines_are_only_shown_with_everything() -> None:
    own = "the engine's own reason: the model is dense"
    told = BATCH.model_copy(update={"evidence": ("line 7: a log line", own)})
    assert own in terminal(with_findings(told), 80)
    assert "line 7" not in terminal(with_findings(told), 80)
    assert "line 7: a log line" in terminal(with_findings(told), 80, everything=True)


def test_cosmetics_say_why_they_do_nothing_and_nothing_else() -> None:
    text = terminal(with_findings(HARMLESS, PROCESSES), 80)
    assert "No effect here: FlashInfer runs on GPUs only." in text
    assert PROCESSES.why not in text
    assert PROCESSES.why in terminal(with_findings(PROCESSES), 200, everything=True)


def test_words_that_differ_are_in_the_heading() -> None:
    def side(side: Side, *words: str, **variables: str) -> Side:
        return side.model_copy(update={"arguments": words, "variables": variables})

    differing = UPGRADE.model_copy(update={"old": side(OLD), "new": side(NEW, "-c", "a b", VLLM_X="1 2")})
    assert "old words: none\nnew words: VLLM_X='1 2' -c 'a b'\n" in terminal(differing, 80)
    assert "words:" not in terminal(UPGRADE, 80)


def test_commands_are_whole_lines() -> None:
    lines = terminal(UPGRADE, 60).splitlines()
    assert UPGRADE.pinned_command in lines
    assert UPGRADE.prove_command in lines


def test_the_answer_is_in_the_first_lines() -> None:
    assert "7 things moved that nobody asked for, 3 of them cosmetic" in "\n".join(
        terminal(UPGRADE, 80).splitlines()[:5]
    )
    assert "nothing moved" in terminal(DIFFS["nothing"], 80)


# --- colour -------------------------------------------------------------------------------------------------------


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    return monkeypatch


def test_no_codes_when_piped(environ: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    print_diff(UPGRADE, stdout())
    assert "\x1b" not in capsys.readouterr().out


def test_colour_on_a_terminal_unless_told_otherwise(environ: pytest.MonkeyPatch) -> None:
    def printed() -> str:
        stream = Terminal()
        environ.setattr("sys.stdout", stream)
        print_diff(UPGRADE, stdout())
        return stream.getvalue()

    def colours(text: str) -> set[str]:
        codes = {code for found in COLOUR.findall(text) for code in found[2:-1].split(";")}
        return {code for code in codes if code.isdigit() and (30 <= int(code) <= 49 or int(code) >= 90)}

    coloured = printed()
    assert colours(coloured)
    environ.setenv("NO_COLOR", "1")
    plain = printed()
    assert not colours(plain)
    assert COLOUR.sub("", plain) == COLOUR.sub("", coloured)


@pytest.mark.parametrize(("columns", "width"), [(None, 100), ("72", 72), ("300", 120)])
def test_width(environ: pytest.MonkeyPatch, columns: str | None, width: int) -> None:
    """A pipe is 100 wide, COLUMNS decides, and results are never wider than 120."""
    if columns:
        environ.setenv("COLUMNS", columns)
    environ.setattr("sys.stdout", StringIO())
    assert stdout().width == width


def test_notes_go_to_stderr(environ: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    stderr().print("a note")
    assert capsys.readouterr() == ("", "a note\n")


# --- Markdown and GitHub --------------------------------------------------------------------------------------------


def with_findings(*findings: object) -> Diff:
    return UPGRADE.model_copy(update={"findings": findings})


def test_markdown_cells_hold_what_they_are_given() -> None:
    odd = ADMISSION.model_copy(update={"headline": "a | b\nc <d> `e`", "why": "x|y", "pin": Pin(text="-a 'b|`c`'")})
    row = next(line for line in diff_markdown(with_findings(odd)).splitlines() if "a \\|" in line)
    assert row == r"| scheduling | a \| b c &lt;d> \`e\` | x\|y | `` -a 'b\|`c`' `` |"
    assert len(re.findall(r"(?<!\\)\|", row)) == 5


def test_markdown_without_cosmetics_has_no_fold_for_them() -> None:
    assert "cosmetic</summary>" in diff_markdown(UPGRADE)
    assert "cosmetic</summary>" not in diff_markdown(with_findings(BATCH))


def test_github_lines_are_commands() -> None:
    odd = BATCH.model_copy(update={"headline": "50 %\nmore", "why": "a:b,c"})
    (line,) = diff_github(with_findings(odd)).splitlines()
    assert line == (
        "::warning title=vllm 0.20.2 to vllm 0.32.0::50 %25%0Amore. a:b,c Pin: --max-num-batched-tokens 8192"
    )


def test_github_shows_at_most_one_notice_for_cosmetics() -> None:
    many = [COSMETIC.model_copy(update={"key": f"k{n}"}) for n in range(30)]
    text = diff_github(with_findings(BATCH, *many))
    assert [line.split(" ")[0] for line in text.splitlines()] == ["::warning", "::notice"]


def test_json_is_sorted_by_nothing_but_the_schema() -> None:
    assert list(json.loads(dump(UPGRADE)))[:3] == ["document", "schema_version", "old"]

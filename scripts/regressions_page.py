"""Write docs/regressions.md from docs/regressions.toml: which reported regressions `diff` names, and what pins them.

Each side is the shipped profile of the release where there is one, else simulated, which takes half a minute. A third
argument is a folder that keeps the captures, for another page from the same ones.
"""

from __future__ import annotations

import hashlib
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engdiff.diff.compare import compare
from engdiff.errors import EngdiffError
from engdiff.references import parse
from engdiff.schema.capture import Capture
from engdiff.schema.diff import Diff, Pin
from engdiff.schema.files import dump, load_capture, write_text
from engdiff.sources.acquire import Wishes, acquire

HEAD = """# Reported regressions, and what `diff` says

Made by `scripts/regressions_page.py` from [regressions.toml](regressions.toml), which holds for each report the
two releases, the GPU, the model and the words after `--` that `engdiff diff` is given, and the setting that names the
cause. The reports are those on vLLM and SGLang in a collection of public threads (ids as there).

**Rule of selection.** Every report is here. One is *selected* where its cause is established, the cause is a default or
a rule of the engine that moved, and its two sides are releases or follow from one that is named ("before 0.26.0").
Out are: causes that nobody established, commits, pull requests, nightlies and images without a release, other hardware
and its faults, dependencies, a flag that the user changed, and faults of code with which no default or rule moved.

**Named** means: `engdiff diff OLD/GPU NEW/GPU --model MODEL -- WORDS` has a finding, or a known change that no value
shows, about that very setting, and where the cause came with one release, says that release. The GPU and the model
are the nearest that engdiff knows. No side was started: both are resolved by the release's own configuration code, so
sizes that are measured on a device are not in the answer.

**Tuned on**: an entry of engdiff's knowledge cites this report or its pull request, was added or corrected because of
it, or a test asks for it by name. Those say little about what `diff` finds in a report that nobody has shown it. Where
an entry cites the engine's own files alone, it is not told what led there; such a report counts as not tuned on.
"""

TABLE = """| report | releases | setting | named | since | pin, or why there is none | tuned on |
| --- | --- | --- | --- | --- | --- | --- |"""

BESIDE = """## Beside the count: changes that came with a release

Reports that are left out for their sides alone (a commit, a pull request, an image), or because the rule is of a
dependency or moved elsewhere, and whose change is known to have come with one release: `diff` was asked about that
release and an older one.
"""


@dataclass(frozen=True)
class Case:
    """One report. ``keys``: a finding or behaviour that names the cause has one of these; empty: nothing is asked."""

    id: str
    url: str
    selected: bool
    because: str
    old: str = ""
    new: str = ""
    gpu: str = ""
    model: str = ""
    words: Sequence[str] = ()
    keys: Sequence[str] = ()
    since: str | None = None
    tuned: bool = False
    why_not: str = ""

    @property
    def link(self) -> str:
        """The id, with the thread behind it."""
        return f"[{self.id}]({self.url})"

    @property
    def releases(self) -> str:
        """Both sides in short."""
        engine, _, old = self.old.partition("@")
        return f"{engine} {old} → {self.new.partition('@')[2]}"


@dataclass(frozen=True)
class Said:
    """What names the cause: the sentence, since when, and the pin."""

    key: str
    text: str
    since: str | None
    pin: Pin


@dataclass(frozen=True)
class Answer:
    """What `diff` said of a case; ``why`` where it does not name the cause."""

    case: Case
    said: tuple[Said, ...] = ()
    why: str = ""

    @property
    def pinned(self) -> bool:
        """Whether a pin can be typed."""
        return any(one.pin.text for one in self.said)


@dataclass
class Captures:
    """Captures by what they were asked with; ``kept`` is a folder for them, or nowhere."""

    kept: Path | None
    made: dict[str, Capture] = field(default_factory=dict)

    def of(self, side: str, case: Case) -> Capture:
        """The capture of one side of a case. Raises EngdiffError where the release cannot be asked."""
        reference = f"{side}/{case.gpu}"
        asked = " ".join((reference, case.model, *case.words))
        if asked not in self.made:
            self.made[asked] = self._read(asked) or self._make(reference, case, asked)
        return self.made[asked]

    def _place(self, asked: str) -> Path | None:
        name = hashlib.sha256(asked.encode()).hexdigest()[:16]
        return self.kept / f"{name}.json" if self.kept else None

    def _read(self, asked: str) -> Capture | None:
        place = self._place(asked)
        return load_capture(place) if place and place.is_file() else None

    def _make(self, reference: str, case: Case, asked: str) -> Capture:
        progress(asked)
        wishes = Wishes(model=case.model, arguments=tuple(case.words))
        made = acquire(parse(reference), wishes, progress).capture
        if place := self._place(asked):
            write_text(place, dump(made))
        return made


def main(data: str, target: str, kept: str | None = None) -> None:
    """Write the page."""
    cases = [Case(**row) for row in tomllib.loads(Path(data).read_text(encoding="utf-8"))["case"]]
    captures = Captures(Path(kept) if kept else None)
    answers = [answer(case, captures) for case in cases if case.keys]
    Path(target).write_text("\n".join((*page(cases, answers), "")), encoding="utf-8")


def progress(line: str) -> None:
    """What is being done, for whoever waits."""
    sys.stderr.write(f"{line}\n")


def answer(case: Case, captures: Captures) -> Answer:
    """What `diff` says of one case."""
    try:
        old, new = (captures.of(side, case) for side in (case.old, case.new))
    except EngdiffError as error:
        return Answer(case, why=case.why_not or f"{error.message}.")
    found = compare(old, new, old_label=case.old, new_label=case.new)
    said = tuple(one for one in named(found) if one.key in case.keys and case.since in (None, one.since))
    return Answer(case, said, "" if said else case.why_not or "No finding and no known change is about it.")


def named(found: Diff) -> Iterator[Said]:
    """Everything that a Diff names."""
    for finding in found.findings:
        yield Said(finding.key, finding.headline, finding.since, finding.pin)
    for known in found.behaviours:
        yield Said(known.key, first_sentence(known.says), known.since, known.pin)


def first_sentence(text: str) -> str:
    """What changed, without why it matters."""
    return f"{text.split('. ')[0].rstrip('.')}."


def page(cases: Sequence[Case], answers: Sequence[Answer]) -> Iterator[str]:
    """The parts of the page."""
    asked = [one for one in answers if one.case.selected]
    beside = [one for one in answers if not one.case.selected]
    yield HEAD
    yield "## Selected\n"
    yield counted(asked)
    yield from table(asked)
    yield "\n### Why they are selected\n"
    yield from (f"- {one.case.link}: {one.case.because}" for one in asked)
    yield "\n### Not named\n"
    yield from (f"- {one.case.link} ({one.case.releases}): {one.why}" for one in asked if not one.said)
    yield f"\n{BESIDE}"
    yield counted(beside)
    yield from table(beside)
    yield from ("", *(f"- {one.case.link} is not named: {one.why}" for one in beside if not one.said))
    yield "\n## Not selected\n"
    yield from (f"- {case.link}: {case.because}" for case in cases if not case.selected)


def counted(answers: Sequence[Answer]) -> str:
    """How many are named, with all and without those that were tuned on."""
    untuned = [one for one in answers if not one.case.tuned]
    return f"{count(answers)} Without those tuned on: {count(untuned)}\n"


def count(answers: Sequence[Answer]) -> str:
    """How many of these are named, and how many of those have a pin that can be typed."""
    hits = [one for one in answers if one.said]
    pins = sum(one.pinned for one in hits)
    return f"{len(hits)} of {len(answers)} named with the pin or with why there is none; of these {pins} with a pin."


def table(answers: Sequence[Answer]) -> Iterator[str]:
    """A row for each."""
    yield TABLE
    yield from map(row, answers)


def row(one: Answer) -> str:
    """One case: what names its cause, or that nothing does."""
    case = one.case
    said = (joined(x.text for x in one.said), joined(x.since or "" for x in one.said), joined(map(pin, one.said)))
    cells = (
        case.link,
        case.releases,
        joined(f"`{key}`" for key in ([x.key for x in one.said] or case.keys)),
        *(said if one.said else ("**no**", "", "")),
        "yes" if case.tuned else "no",
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def joined(texts: Iterator[str] | Sequence[str]) -> str:
    """Each once, one under the other."""
    return "<br>".join(dict.fromkeys(filter(None, texts)))


def pin(one: Said) -> str:
    """The pin as typed, or why there is none."""
    return f"`{one.pin.text}`" if one.pin.text else f"none: {one.pin.because}"


if __name__ == "__main__":
    main(*sys.argv[1:])

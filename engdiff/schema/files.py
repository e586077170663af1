"""Reading and writing documents: one clear error each, upgraded on load, written atomically."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from engdiff import errors
from engdiff.schema.budget import BUDGET_SCHEMA, Budget
from engdiff.schema.capture import CAPTURE_SCHEMA, Capture
from engdiff.schema.diff import DIFF_SCHEMA, Diff
from engdiff.schema.explanation import EXPLANATION_SCHEMA, Explanation
from engdiff.schema.history import HISTORY_SCHEMA, History
from engdiff.schema.series import SERIES_SCHEMA, Series
from engdiff.schema.upgrade import upgrade

Document = TypeVar("Document", Capture, Diff, Series, History, Explanation, Budget)

NEWEST = {
    "capture": CAPTURE_SCHEMA,
    "diff": DIFF_SCHEMA,
    "series": SERIES_SCHEMA,
    "history": HISTORY_SCHEMA,
    "explanation": EXPLANATION_SCHEMA,
    "budget": BUDGET_SCHEMA,
}


def load_capture(path: Path) -> Capture:
    """The capture in ``path``. Raises a :class:`~engdiff.errors.DocumentError` that names the file and the place."""
    return parse(read_text(path), str(path), Capture)


def read_text(path: Path) -> str:
    """The file's text, or the error that says why not."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise errors.DocumentMissing(path) from None
    except UnicodeDecodeError:
        raise errors.DocumentNotJson(path, 1, 1) from None
    except OSError as error:
        raise errors.DocumentUnreadable(path, error.strerror or str(error)) from None


def parse(text: str, name: str, model: type[Document]) -> Document:
    """A document from its text; ``name`` is how the user knows where the text came from."""
    kind = model.model_fields["document"].default
    data = parse_json(text, name)
    if model is Capture and isinstance(data, dict) and data.get("document") == "budget":
        return parse(text, name, Budget).capture  # what a budget predicts is a capture
    if not isinstance(data, dict) or "schema_version" not in data:
        raise errors.DocumentForeign(name, kind, "JSON of another kind")
    if data.get("document") != kind:
        other = data.get("document")
        raise errors.DocumentForeign(name, kind, f"a {other}" if other in tuple(NEWEST) else "JSON of another kind")
    if not _is_utf8(data, text):
        raise errors.DocumentInvalid(name, kind, "holds half a character (a lone surrogate)")
    version = data["schema_version"]
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise errors.DocumentInvalid(name, "schema_version", "is not a whole number from 1 on")
    if version > NEWEST[kind]:
        raise errors.DocumentTooNew(name, version, NEWEST[kind])
    try:
        return model.model_validate(upgrade(kind, data))
    except ValidationError as error:
        first = error.errors()[0]
        raise errors.DocumentInvalid(name, _key(first["loc"]) or kind, first["msg"]) from None


def _key(place: Sequence[int | str]) -> str:
    """The place as keys of the file; where a value may be of several kinds, pydantic puts the kind's name between."""
    return ".".join(str(part) for part in place if not str(part)[:1].isupper())


def parse_json(text: str, name: str) -> Any:
    """JSON, or the error that tells a truncated file from one that never was JSON."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        if _breaks_off(text, error):
            raise errors.DocumentTruncated(name, error.lineno) from None
        raise errors.DocumentNotJson(name, error.lineno, error.colno) from None
    except (ValueError, RecursionError):  # a number of thousands of digits, or nesting without end
        raise errors.DocumentNotJson(name, 1, 1) from None


def _refuse(word: str) -> None:
    """NaN and Infinity are no JSON, and engdiff writes neither."""
    raise ValueError(word)


def _is_utf8(data: Any, text: str) -> bool:
    """Whether every text in ``data`` can be written again; only an escape can bring in half a character."""
    if "\\ud" not in text.lower():
        return True
    try:
        json.dumps(data, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _breaks_off(text: str, error: json.JSONDecodeError) -> bool:
    """Whether the parser ran into the end: nothing, half a word or half a string is left."""
    if "Unterminated" in error.msg:
        return True
    if error.msg.startswith("Extra data"):
        return False
    rest = text[error.pos :].rstrip()
    return text.lstrip()[:1] in ("{", "[") and (len(rest) < 2 or any(w.startswith(rest) for w in _WORDS))


_WORDS = ("true", "false", "null")


def dump(document: BaseModel) -> str:
    """The document as JSON text, indented, with a newline at the end."""
    try:
        return document.model_dump_json(indent=1) + "\n"
    except PydanticSerializationError:  # a variable or a path whose bytes are no UTF-8: half characters become ?
        text = json.dumps(document.model_dump(), indent=1, ensure_ascii=False)
        return text.encode("utf-8", "replace").decode("utf-8") + "\n"


def check_output(path: Path, *, force: bool) -> None:
    """Refuse an output that cannot be written before any work is done for it."""
    folder = path.parent
    try:
        if path.is_dir():
            raise errors.OutputUnwritable(path, "it is a folder")
        if path.exists() and not force:
            raise errors.OutputExists(path)
        if not folder.is_dir():
            raise errors.OutputUnwritable(path, f"the folder {folder} does not exist")
    except OSError as error:  # a name too long, or a folder that may not be entered
        raise errors.OutputUnwritable(path, error.strerror or str(error)) from None
    if not os.access(folder, os.W_OK):
        raise errors.OutputUnwritable(path, f"no permission in {folder}")


def write_text(path: Path, text: str) -> None:
    """Write atomically: a reader sees the old file or the whole new one."""
    try:
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
    except OSError as error:
        raise errors.OutputUnwritable(path, error.strerror or str(error)) from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(partial, 0o666 & ~_umask())  # noqa: PTH101 - mkstemp makes 0600; a document is an ordinary file
        os.replace(partial, path)  # noqa: PTH105
    except OSError as error:
        raise errors.OutputUnwritable(path, error.strerror or str(error)) from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(partial)  # noqa: PTH108


def write_somewhere(path: Path, text: str) -> Path:
    """Write to ``path``, or to the temporary folder when that is full or forbidden: a launch is too dear to lose.

    Raises :class:`~engdiff.errors.OutputUnwritable` that says where the text was kept.
    """
    try:
        write_text(path, text)
    except errors.OutputUnwritable as error:
        kept = Path(tempfile.gettempdir()) / f"engdiff-{os.getpid()}-{path.name}"
        write_text(kept, text)
        raise errors.OutputUnwritable(path, error.why, kept) from None
    return path


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

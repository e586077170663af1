"""Starts the llama.cpp server that is compiled into ``xllamacpp``, and writes what it was told and what it holds.

Runs in the engine's interpreter: standard library and xllamacpp only. ``probe.py PLAN.json`` where the
plan has ``fields`` (dotted CommonParams path to value; enum values by member name), ``out`` (a folder)
and ``observe`` (whether to write; without it the server starts the same way and nothing is written). With ``start``
false, which several plans may say, the parameters are written and nothing is started.
"""

import enum
import json
import signal
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

DEEPEST = 5
SHORTEST_REPEAT = 8


def main(plan_file: Any) -> None:
    """Start, write, and wait for a signal."""
    plan = json.loads(Path(plan_file).read_text(encoding="utf-8"))
    started = time.time()
    import xllamacpp

    imported = time.time()
    params = xllamacpp.CommonParams()
    told = {"defaults": plain(params), "version": metadata.version("xllamacpp"), "python": sys.version.split()[0]}
    for path, value in plan["fields"].items():
        assign(params, path, value)
    leave_when_asked()
    if plan["observe"]:  # before the start, so that a start that fails is known as well
        write(plan["out"], "parameters", {**told, "resolved": plain(params)})
    if not plan.get("start", True):
        write(plan["out"], "simulation", {})
        return
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        sys.exit(f"xllamacpp: {error}")
    leave_when_asked()  # again: old builds put handlers of their own in place, which do not end this process
    listening = getattr(server, "listening_address", None)
    if not listening:
        sys.exit("this version of xllamacpp does not listen on HTTP (it does from 0.2.7 on)")
    if plan["observe"]:
        write(plan["out"], "server", {
            **told,
            "resolved": plain(params),
            "build_info": plain(getattr(xllamacpp, "BUILD_INFO", None)),
            "system_info": xllamacpp.get_system_info() if hasattr(xllamacpp, "get_system_info") else None,
            "listening": str(listening),
            "times": {"started": started, "imported": imported, "listening": time.time()},
        })  # fmt: skip
    while True:
        time.sleep(3600)


def leave_when_asked() -> None:
    """End on SIGINT and SIGTERM."""
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, leave)


def leave(*_: object) -> NoReturn:
    """End the way Ctrl-C ends llama-server."""
    raise SystemExit(0)


def write(out: Any, name: Any, facts: Any) -> None:
    """Write ``name.json`` atomically."""
    partial = Path(out) / f"{name}.partial"
    partial.write_text(json.dumps(facts), encoding="utf-8")
    partial.replace(Path(out) / f"{name}.json")


def assign(params: Any, path: Any, value: Any) -> None:
    """Set a dotted field; an enum member is given by name, a list element type by the field's own."""
    *parents, leaf = path.split(".")
    holder = params
    for name in parents:
        holder = getattr(holder, name)
    setattr(holder, leaf, converted(leaf, getattr(holder, leaf), value))


def converted(leaf: Any, current: Any, value: Any) -> Any:
    """The value in the type of the field: enum members by name, also in a list, and adapters as objects."""
    if isinstance(current, enum.Enum) and isinstance(value, str):
        return type(current)[value]
    if isinstance(current, list) and current and isinstance(current[0], enum.Enum):
        return [type(current[0])[name] for name in value]
    if leaf == "lora_adapters":
        import xllamacpp

        return [xllamacpp.CommonAdapterLoraInfo(**adapter) for adapter in value]
    return value


def plain(value: Any, depth: int = 0) -> Any:
    """JSON data for CommonParams and everything in it; long runs of one value are folded."""
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, float):
        return round(value, 6)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(k): plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        items = [plain(v, depth + 1) for v in value]
        folded = len(items) > SHORTEST_REPEAT and all(i == items[0] for i in items)
        return {"repeated": items[0], "times": len(items)} if folded else items
    if type(value).__module__.startswith("xllamacpp") and depth < DEEPEST:
        return {name: plain(v, depth + 1) for name, v in fields(value)}
    return type(value).__name__


def fields(value: Any) -> Any:
    """The data fields of an extension object; one that cannot be read is left out."""
    for name in sorted(dir(value)):
        if name.startswith("_"):
            continue
        try:
            held = getattr(value, name)
        except (AttributeError, TypeError, ValueError, UnicodeDecodeError, RuntimeError):
            continue
        if not callable(held):
            yield name, held


if __name__ == "__main__":
    for each_plan in sys.argv[1:]:
        main(each_plan)

"""Settings of a launch in three layers: what the user wrote, what became of it, and what the scheduler holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from engdiff.engines.layers import MISSING, exact, lookup, settle
from engdiff.engines.sglang import normalize
from engdiff.knowledge.tables import Names
from engdiff.schema.capture import Setting
from engdiff.schema.values import Evidence, Known, Unknown

Tree = Mapping[str, Any]

CONSTRUCTORS = {"__init__"}
"""What sets a field to what was given decides nothing."""

REQUESTS = "tokens of the pool / context length x 512, between 2,048 and 4,096, and at most half the tokens"
"""``max_num_reqs`` in model_executor/model_runner.py and the limit in managers/tp_worker.py, 0.4.6-0.5.9; since then in
kv_cache_configurator.py and its like."""

DRAWN = Unknown(because="SGLang draws it anew at each start; --random-seed fixes it")


@dataclass(frozen=True)
class Wrote:
    """What was written beside the user's words: his variables, and what engdiff added (``--device cpu``)."""

    variables: Mapping[str, str]
    added: tuple[str, ...]

    def adds(self, flag: str | None) -> bool:
        """Whether this flag is engdiff's."""
        return flag is not None and any(one.partition(" ")[0] == flag for one in self.added)


def settings(arguments: Tree, effective: Mapping[str, Known], version: str, wrote: Wrote) -> dict[str, Setting]:
    """Every canonical key that this version's arguments or its scheduler hold, with its origin and its rule."""
    resolved = arguments.get("resolved") or {}
    found: dict[str, Setting] = {}
    for key, names in normalize.KNOWLEDGE.names(version).items():
        value = lookup(resolved, names.native) if names.native else MISSING
        if value is MISSING and key not in effective:
            continue
        found[key] = _setting(key, names, arguments, effective.get(key), wrote)
    for key in effective.keys() - found.keys():
        found[key] = settle(
            configured=None, declared=MISSING, resolved=normalize.NOT_THERE, effective=effective[key], native=None
        )
    return found


def _setting(key: str, names: Names, arguments: Tree, effective: Known | None, wrote: Wrote) -> Setting:
    configured = _configured(key, names, arguments, wrote)
    became = Evidence(source="probe", where=f"ServerArgs.{names.native}")
    setting = settle(
        configured=configured,
        declared=_declared(key, names, arguments),
        resolved=_layer(key, names.native, arguments.get("resolved") or {}, became) or normalize.NOT_THERE,
        effective=effective,
        native=names.native,
    )
    if key == "model.seed" and configured is None:
        return setting.model_copy(update={"resolved": DRAWN, "effective": DRAWN, "origin": "derived"})
    if setting.origin not in ("derived", "forced"):
        return setting
    added = "engdiff added it: see what engdiff set" if wrote.adds(names.flag) else None
    return setting.model_copy(update={"because": added or _because(setting, names, arguments)})


def _layer(key: str, native: str | None, tree: Tree, evidence: Evidence) -> Known | None:
    value = lookup(tree, native) if native else MISSING
    if value is MISSING or native is None:
        return None
    return Known(value=normalize.translated(key, native, value, tree), evidence=evidence)


def _configured(key: str, names: Names, arguments: Tree, wrote: Wrote) -> Known | None:
    """What the user wrote, as a flag of this field or as a variable."""
    if wrote.adds(names.flag):
        return None
    explicit = arguments.get("explicit") or {}
    if names.native and lookup(explicit, names.native) is not MISSING:
        return _layer(key, names.native, explicit, Evidence(source="command", where=names.flag or names.native))
    if names.arg and names.arg in explicit and names.native:
        where = names.flag or names.arg
        return exact(normalize.translated(key, names.native, explicit[names.arg], explicit), "command", where)
    if names.variable and names.variable in wrote.variables:
        return exact(wrote.variables[names.variable], "command", names.variable)
    return None


def _declared(key: str, names: Names, arguments: Tree) -> object:
    """The default of the flag, which is what who writes nothing gets; else that of the field."""
    if names.native is None:
        return MISSING
    flag = (arguments.get("flags") or {}).get(names.arg or names.native)
    value = flag.get("default", MISSING) if isinstance(flag, dict) else MISSING
    if value is MISSING:
        value = lookup(arguments.get("declared") or {}, names.native)
    return (
        value if value is MISSING else normalize.translated(key, names.native, value, arguments.get("resolved") or {})
    )


def _because(setting: Setting, names: Names, arguments: Tree) -> str | None:
    """The rule of SGLang that made the value, or that the scheduler changed it after the model was loaded."""
    if setting.native == "max_running_requests" and setting.origin == "derived":
        return REQUESTS
    held, resolved = setting.effective, setting.resolved
    if isinstance(held, Known) and isinstance(resolved, Known) and held.value != resolved.value:
        return "the scheduler decided it when it was built"
    rule = rule_of(arguments.get("rules") or (), (names.native or "").partition(".")[0])
    return f"set by {rule}" if rule else None


def rule_of(rules: Sequence[JsonValue], field: str) -> str | None:
    """The last rule that set a field; constructing the arguments is none."""
    names = [
        str(rule.get("rule"))
        for rule in rules
        if isinstance(rule, dict) and isinstance(rule.get("fields"), list) and field in (rule["fields"] or ())  # type: ignore[operator]
    ]
    return next((name for name in reversed(names) if name not in CONSTRUCTORS), None)

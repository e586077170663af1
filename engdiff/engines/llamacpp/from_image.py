"""From what a launch of llama-server in a container image showed to the parts of a Capture: no probe runs in there."""

from __future__ import annotations

from engdiff.engines.contract import Observed
from engdiff.engines.layers import exact
from engdiff.engines.llamacpp import admission, from_log, http, stated
from engdiff.engines.llamacpp.facts import parse, start_of
from engdiff.engines.llamacpp.launch import translate
from engdiff.engines.llamacpp.normalize import KNOWLEDGE, canonical, healthy, warnings_in
from engdiff.errors import UnknownFlag
from engdiff.schema.capture import Capture
from engdiff.schema.values import Known, Value

NO_PROBE = "the image has no Python for a probe: this is what the server's endpoints and its log state"


def capture(observed: Observed, base: Capture) -> Capture:
    """``base`` with what the endpoints and the log say, and the words that the server was given."""
    start, log = start_of(observed.log), parse(observed.log)
    said = from_log.capture(start, base) if start else base
    answered = http.capture(observed.endpoints, base)
    effective = {key: setting.effective for key, setting in answered.settings.items()}
    known = {key: value for key, value in effective.items() if isinstance(value, Known)}
    asked, untold = _asked(observed)
    identity = said.identity
    return said.model_copy(
        update={
            "identity": base.identity.model_copy(
                update={
                    "version": _known_of(answered.identity.version, identity.version, base.identity.version),
                    "commit": _known_of(answered.identity.commit, identity.commit, base.identity.commit),
                    "devices": identity.devices or base.identity.devices,
                    "driver": _known_of(base.identity.driver, identity.driver),
                }
            ),
            "launch": base.launch,
            "native": {**said.native, **answered.native},
            "settings": stated.settled({**known, **stated.effective_in(log)}, asked, log),
            "admission": admission.rule(),
            "boot": (*said.boot, healthy(observed)),
            "warnings": warnings_in(log),
            "notes": (*said.notes, NO_PROBE, *untold),
        }
    )


def _known_of(*values: Value) -> Value:
    """The first that is known; of unknown ones the last."""
    return next((value for value in values if isinstance(value, Known)), values[-1])


def _asked(observed: Observed) -> tuple[dict[str, Known], tuple[str, ...]]:
    """What words and variables ask for, by canonical key; and what cannot be told, because of a word not known here."""
    request = observed.request
    try:
        translation = translate(request.arguments, observed.plan.read_variables, request.version)
    except UnknownFlag as error:
        return {}, (f"what the user asked for is not told apart from defaults: {error.message}",)
    written = {"model.path": request.model, **translation.fields}
    where = {"model.path": "-m", **translation.origins}
    paths = {key: names.native for key, names in KNOWLEDGE.names(request.version).items()}
    return {
        key: exact(canonical(key, written[path]), "command", where[path])
        for key, path in paths.items()
        if path is not None and path in written
    }, ()

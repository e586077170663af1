"""The ground the two engines stood on: machine and packages. Shown, since it explains; never a finding by itself."""

from __future__ import annotations

from collections.abc import Iterator

from engdiff.diff.sides import silent_because
from engdiff.schema.capture import Capture, Environment, Host
from engdiff.schema.diff import Move, NotCompared
from engdiff.schema.values import Known, Unknown


def machine_moves(old: Capture, new: Capture) -> tuple[Move, ...]:
    """CPU, CPU features, glibc, Python, driver and devices that differ; what one side does not know did not move."""
    left, right = _machine(old), _machine(new)
    moves = [Move(name=k, old=left[k], new=right[k]) for k in left if k in right and left[k] != right[k]]
    return (*moves, *_cpu_features(old.identity.host, new.identity.host))


def _cpu_features(old: Host | Unknown, new: Host | Unknown) -> Iterator[Move]:
    if isinstance(old, Unknown) or isinstance(new, Unknown):
        return
    before, after = set(old.cpu_features), set(new.cpu_features)
    if before != after:
        gone, added = " ".join(sorted(before - after)), " ".join(sorted(after - before))
        yield Move(name="CPU features", old=gone or None, new=added or None)


def _machine(capture: Capture) -> dict[str, str | None]:
    """What is known of the machine. Where devices are stated, no GPU among them means that there is none."""
    identity, found = capture.identity, dict[str, str | None]()
    if isinstance(identity.host, Host):
        found |= _known("CPU", identity.host.cpu)
        found |= {
            "CPU count": str(identity.host.cpu_count),
            "architecture": identity.host.arch,
            "operating system": identity.host.os,
        }
        found |= _known("glibc", identity.host.glibc)
    if isinstance(identity.environment, Environment):
        found["Python"] = identity.environment.python
    found |= _known("driver", identity.driver)
    if identity.devices:
        found["devices"] = ", ".join(d.name for d in identity.devices if d.kind == "gpu") or None
    return found


def _known(name: str, value: Known | Unknown) -> dict[str, str | None]:
    return {name: str(value.value)} if isinstance(value, Known) else {}


def package_moves(old: Capture, new: Capture) -> tuple[Move, ...]:
    """Packages that were added, removed or moved; the engine itself is not among them."""
    pinned = "profile" in (old.identity.source, new.identity.source)
    left, right = (_packages(side, pinned=pinned) for side in (old, new))
    if left is None or right is None or bool(old.simulated) != bool(new.simulated):
        return ()
    names = sorted(left.keys() | right.keys())
    return tuple(Move(name=n, old=left.get(n), new=right.get(n)) for n in names if left.get(n) != right.get(n))


def _packages(capture: Capture, *, pinned: bool) -> dict[str, str] | None:
    """What is installed beside the engine; of a simulation what the release asks for, since others answered.

    ``pinned``: only what it asks for in one release alone, which is all that a profile holds.
    """
    environment = capture.identity.environment
    if capture.simulated:
        asked = {name: library.asked or "any" for name, library in capture.simulated.libraries.items()}
        return {name: wanted for name, wanted in asked.items() if not pinned or wanted.startswith("==")}
    if isinstance(environment, Unknown):
        return None
    return {name: version for name, version in environment.packages.items() if name != environment.distribution}


def ground_not_compared(old: Capture, new: Capture, names: tuple[str, str] = ("old", "new")) -> Iterator[NotCompared]:
    """Machine and packages, where a side does not state them. ``names``: how the sides are called."""
    sides = ((names[0], old), (names[1], new))
    for what, field, it in (("machine", "host", "it"), ("packages", "environment", "them")):
        silent = [(s, c) for s, c in sides if isinstance(getattr(c.identity, field), Unknown)]
        if len(silent) == len(sides):
            yield NotCompared(what=what, because=f"neither side states {it}")
        elif silent:
            yield NotCompared(what=what, because=silent_because(*silent[0], it))
    if bool(old.simulated) != bool(new.simulated):
        yield NotCompared(what="packages", because="of a simulation only those that the release asks for are known")

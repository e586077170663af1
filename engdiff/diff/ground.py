"""The ground the two engines stood on: machine and packages. Shown, since it explains; never a finding by itself."""

from __future__ import annotations

from engdiff.schema.capture import Capture
from engdiff.schema.diff import Move
from engdiff.schema.values import plain


def machine_moves(old: Capture, new: Capture) -> tuple[Move, ...]:
    """CPU, CPU features, glibc, Python, driver and devices that differ."""
    left, right = _machine(old), _machine(new)
    moves = [Move(name=k, old=left[k], new=right[k]) for k in left if left[k] != right[k]]
    before, after = set(old.identity.host.cpu_features), set(new.identity.host.cpu_features)
    if before != after:
        moves.append(
            Move(
                name="CPU features",
                old=" ".join(sorted(before - after)) or None,
                new=" ".join(sorted(after - before)) or None,
            )
        )
    return tuple(moves)


def _machine(capture: Capture) -> dict[str, str | None]:
    identity = capture.identity
    return {
        "CPU": _text(identity.host.cpu),
        "CPU count": str(identity.host.cpu_count),
        "architecture": identity.host.arch,
        "operating system": identity.host.os,
        "glibc": _text(identity.host.glibc),
        "Python": identity.environment.python,
        "driver": _text(identity.driver),
        "devices": ", ".join(d.name for d in identity.devices if d.kind == "gpu") or None,
    }


def _text(value: object) -> str | None:
    bare = plain(value)  # type: ignore[arg-type]
    return None if bare is None else str(bare)


def package_moves(old: Capture, new: Capture) -> tuple[Move, ...]:
    """Packages that were added, removed or moved; the engine itself is not among them."""
    left, right = dict(old.identity.environment.packages), dict(new.identity.environment.packages)
    for capture, packages in ((old, left), (new, right)):
        packages.pop(capture.identity.environment.distribution, None)
    names = sorted(left.keys() | right.keys())
    return tuple(Move(name=n, old=left.get(n), new=right.get(n)) for n in names if left.get(n) != right.get(n))

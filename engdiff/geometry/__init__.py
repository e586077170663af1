"""What a model is made of: its tensors, and what one token leaves in the cache, from its ``config.json`` alone.

Engine-neutral: nothing here knows how an engine pads, divides or allocates. :func:`geometry` is the way in.
"""

from __future__ import annotations

from engdiff.geometry.model import Geometry, geometry

__all__ = ["Geometry", "geometry"]

from __future__ import annotations

from support.live.collector import broken, start, store

__all__ = ["broken", "start", "store"]

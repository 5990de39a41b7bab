"""Acceptance: whether what an epoch learned comes into force, decided on the dev split alone.

Pure but for `sweeps`, which has the engine ask; nothing here is ever handed an eval scenario.
"""

from __future__ import annotations

from pytest_tfgrpo.harness.acceptance.decision import decide, limits_of, undecided
from pytest_tfgrpo.harness.acceptance.sweeps import Ask, DevSweeps, Unfinished

__all__ = ["Ask", "DevSweeps", "Unfinished", "decide", "limits_of", "undecided"]

"""What rollouts used, from their groups one by one: tokens, cost and latency, in all and by tool."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable
from math import fsum
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.conversations import USER

if TYPE_CHECKING:
    from pytest_tfgrpo.core.records import Frame, Group, Rollout
    from pytest_tfgrpo.core.report_blocks import SummedQuantity, ToolUse


class Summed:
    """A quantity, of which what is unknown is not counted; its sum is exact in any order."""

    __slots__ = ("_whole", "values")

    def __init__(self) -> None:
        """Start with nothing."""
        self.values = array("d")
        self._whole: int | None = 0
        """The sum while all are integers."""

    def add(self, value: float | None) -> None:
        """Take one more."""
        if value is not None:
            self.values.append(value)
            if self._whole is not None:
                self._whole = self._whole + value if isinstance(value, int) else None

    def row(self) -> SummedQuantity:
        """Return n, sum and mean."""
        known = self.values
        total = fsum(known) if self._whole is None else self._whole
        return {
            "n": len(known),
            "sum": total if known else None,
            "mean": total / len(known) if known else None,
        }


class Quantities:
    """What calls or rollouts used."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.n = 0
        self.tokens, self.costs_usd, self.latencies_ms = Summed(), Summed(), Summed()

    def add(self, source: Frame | Rollout, *, timed: bool = True) -> None:
        """Take one more; its latency counts if it is `timed`."""
        self.n += 1
        self.tokens.add(source.tokens)
        self.costs_usd.add(source.cost_usd)
        if timed:
            self.latencies_ms.add(source.latency_ms)


class UsedInSweep:
    """What the rollouts of a sweep used, in all and by tool; latency is of those that are not errors."""

    def __init__(self, groups: Iterable[Group] = ()) -> None:
        """Take some groups."""
        self.groups = self.informative = self.errors = 0
        self.rollouts = Quantities()
        self._tools: defaultdict[str, Quantities] = defaultdict(Quantities)
        for group in groups:
            self.add(group)

    def add(self, group: Group) -> None:
        """Take one more group."""
        self.groups += 1
        self.informative += group.informative
        if group.mode == "evidence":  # whoever made them has paid
            self.rollouts.n += len(group.rollouts)
            return
        for rollout in group.rollouts:
            is_error = rollout.status == "error"
            self.errors += is_error
            self.rollouts.add(rollout, timed=not is_error)
            for frame in rollout.frames:
                if frame.kind != USER:
                    self._tools[frame.name].add(frame)

    def tools(self) -> list[ToolUse]:
        """Return what each tool or model used, by name."""
        return [
            {
                "tool": name,
                "calls": used.n,
                "tokens": used.tokens.row(),
                "cost_usd": used.costs_usd.row(),
                "latency_ms": used.latencies_ms.row(),
            }
            for name, used in sorted(self._tools.items())
        ]

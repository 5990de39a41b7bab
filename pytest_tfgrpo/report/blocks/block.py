"""What a block of the report is, and what it is made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.metrics.comparison import Comparison, Sweeps

if TYPE_CHECKING:
    from pytest_tfgrpo.gate.verdict import Verdict

T = TypeVar("T")


class BlockSources:
    """What the blocks of one report are made from."""

    def __init__(
        self, run: Run, sweeps: Sweeps, compared: Comparison, verdict: Verdict | None, body: Report
    ) -> None:
        self.run = run
        self.sweeps = sweeps
        self.compared = compared
        self.verdict = verdict
        self.body = body
        """The report without blocks."""
        self._made: dict[str, Any] = {}

    def of(self, block: ReportBlock[T]) -> T | None:
        """Return the value of a block, which is made once: a block may use that of another."""
        if block.key not in self._made:
            self._made[block.key] = block.value(self)
        found: T | None = self._made[block.key]
        return found


def _nothing(*_: object) -> Iterable[str]:
    return ()


@dataclass(frozen=True, slots=True)
class ReportBlock(Generic[T]):
    """A key of the report beyond its body, with what is said of it; `T` is the type of its value."""

    key: str
    """The key in ``report.json``."""
    value: Callable[[BlockSources], T | None]
    """Returns the value for a run; None where it has none."""
    text: Callable[[T], str] = lambda _: ""
    """Returns one sentence for terminal, Markdown and page; empty where nothing is to be said."""
    name: str = ""
    """Stands before the sentence; empty where that is the key."""
    always: Callable[[T, Report], bool] = lambda *_: False
    """Returns whether the terminal shows the sentence without ``-v`` too."""
    details: Callable[[T, Callable[[object], str], int | None], Iterable[str]] = _nothing
    """Returns lines below it, of the value, what shows foreign text, and the most items of a line."""
    warnings: Callable[[T], Iterable[str]] = _nothing
    """Returns what the report warns of."""
    caveat: bool = True
    """Whether the page shows it with how far to trust the result."""
    null: bool = False
    """Whether the report has the key, with null, where there is no value."""

    @property
    def title(self) -> str:
        """What stands before the sentence."""
        return self.name or self.key

    def of(self, report: Mapping[str, Any]) -> T | None:
        """Return the value that a report holds; None where it has none."""
        return report.get(self.key)

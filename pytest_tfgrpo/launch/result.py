"""What a run, or the runs of several agents, came to: a value to look at, to count with and to pass on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.core.texts.text import line, plural
from pytest_tfgrpo.launch.result_lines import WIDTH, faults, headline, html_of, result_lines
from pytest_tfgrpo.launch.result_rows import ResultRow, rows_of

if TYPE_CHECKING:
    from pytest_tfgrpo.gate.verdict import Verdict


FRAMES = ("dataframe", "df", "to_dataframe", "to_df", "to_pandas")
"""What data frames are asked for by elsewhere."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunResult:
    """What a run came to; a notebook shows six lines and a table of the last sweep."""

    run: Run
    """The run with every group, rollout and score, complete or not (see `status`)."""
    verdict: Verdict | None
    """What the gate found; None for a run without learning and without a gate setting."""
    report: Report
    """The report, as in ``report.json``."""
    folder: Path | None
    """Where its files are; None when nothing was written."""
    problems: tuple[str, ...] = ()
    """Why it fails whatever its gate says: what a replay could not answer."""
    unrun: int = 0
    """Scenarios without a split that did not run: a hash put them into train, and nothing was learned."""

    @property
    def passed(self) -> bool:
        """True when the run is complete, without problems, and no gate fails it.

        The minimum scores of single scenarios, which pytest's items check, do not count here.
        """
        if self.run.status != "complete" or self.problems:
            return False
        verdict = self.verdict
        return verdict is None or not (verdict.failed or any(gate.failed for gate in verdict.gates))

    def summary(self, *, verbosity: int = 0) -> str:
        """Return the report as text of 80 columns; from 1 (``-v``) with all lessons, tables and costs."""
        from pytest_tfgrpo.report.terminal import terminal

        return "\n".join(terminal(self.report, verbosity=verbosity))

    def rows(self) -> list[ResultRow]:
        """Return a flat row for each rollout, all with the same columns, as data frames take them."""
        return rows_of(self.run, self.run.identities["actor"]["name"])

    def __iter__(self) -> Iterator[ResultRow]:
        """Iterate over the rows, so that ``pandas.DataFrame(result)`` has them."""
        return iter(self.rows())

    def __await__(self) -> Iterator[None]:
        """Refuse it, as `run` has ended: a coroutine is `arun`; raises TypeError."""
        raise TypeError("run() has returned its result already: leave out await, or use arun()")

    if not TYPE_CHECKING:  # a type checker still finds what there is not

        def __getattr__(self, name: str) -> NoReturn:
            """Raise AttributeError, with what makes a data frame."""
            hint = "; use pandas.DataFrame(result.rows())" if name in FRAMES else ""
            raise AttributeError(f"'RunResult' object has no attribute {name!r}{hint}")

    def _lines(self) -> list[str]:
        folder, here = self.folder, Path.cwd()
        if folder is not None and folder.is_relative_to(here):
            folder = folder.relative_to(here)
        lines = result_lines(self.report, self.passed, "" if folder is None else line(str(folder)))
        left = f"left     {plural(self.unrun, 'scenario')} without a split did not run; add split: eval"
        return [*lines, *([left] if self.unrun else [])]

    def __repr__(self) -> str:
        """Return how it ended, gain, score, lessons, cost and folder, a line each."""
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        return html_of(self._lines(), {"": self.run})


@dataclass(frozen=True, kw_only=True, slots=True)
class RunResults(Mapping[str, RunResult]):
    """What the runs of several agents on one suite came to, by the name of the agent, in their order."""

    results: Mapping[str, RunResult]
    lines: tuple[str, ...] = ()
    """How the agents compare, in words and tables; empty for a single one."""
    page: Path | None = None
    """The page that compares them; None when nothing was written."""

    def __getitem__(self, agent: str) -> RunResult:
        """Return the result of one agent."""
        return self.results[agent]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the agents."""
        return iter(self.results)

    def __len__(self) -> int:
        """Return how many agents there are."""
        return len(self.results)

    @property
    def passed(self) -> bool:
        """True when each run passed."""
        return all(result.passed for result in self.results.values())

    def summary(self) -> str:
        """Return how the agents compare, as text of 80 columns."""
        return "\n".join(self._lines())

    def rows(self) -> list[ResultRow]:
        """Return the rows of all runs, all with the same columns; the column `agent` has its name here."""
        found = [row for name, one in self.results.items() for row in rows_of(one.run, name)]
        columns: dict[str, Any] = dict.fromkeys(key for row in found for key in row)
        return [columns | row for row in found]

    def _lines(self) -> list[str]:
        ends = [f"{name}: {_ending(one)}" for name, one in self.results.items()]
        return [*ends, "", *self.lines] if self.lines else ends

    def __repr__(self) -> str:
        """Return how each run ended, and how the agents compare."""
        return self.summary()

    def _repr_html_(self) -> str:
        return html_of(self._lines(), {name: one.run for name, one in self.results.items()})


def _ending(result: RunResult) -> str:
    """Return how the run of one agent ended, in a line."""
    return line(f"{headline(result.report, result.passed)}; {faults(result.report)}", WIDTH)

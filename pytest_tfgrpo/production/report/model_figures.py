"""How good the versions are that run now: from their newest runs, of which there are only so many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pytest_tfgrpo.production.deployment.serving import Serving
from pytest_tfgrpo.production.view.view import LoopView

MOST_VERSIONS = 5
"""Values of the label ``model_version``: those that are served, then those whose runs are the newest."""
LOOKED_AT = 10_000
"""Newest runs among which the versions are looked for."""
WINDOW = 500
"""Newest runs of a version that count."""
LEAST = 100
"""Of its runs, from which on the share of those that failed says something."""
NONE = "none"
"""Stands for the version of runs that name none."""
_NEWEST = f"""SELECT id, seq, coalesce(policy_version, '{NONE}') AS version, slim FROM trajectories
    ORDER BY seq DESC LIMIT {LOOKED_AT}"""
_VERSIONS = f"SELECT version FROM ({_NEWEST}) GROUP BY version ORDER BY max(seq) DESC LIMIT {MOST_VERSIONS}"
_FIGURES = f"""SELECT count(*), coalesce(sum(CASE WHEN json_valid(slim)
    THEN json_extract(slim, '$.outcome.task_status') = 'failed' END), 0), count(total), avg(total)
    FROM (SELECT slim, (SELECT total FROM rewards WHERE trajectory_id = run.id AND own = 1
    AND typeof(total) = 'real' ORDER BY revision DESC LIMIT 1) AS total
    FROM ({_NEWEST}) run WHERE version = ? ORDER BY seq DESC LIMIT {WINDOW})"""


class ModelFigures(NamedTuple):
    """A version and its newest runs."""

    version: str
    runs: int
    failed: int
    reward_mean: float | None
    """None where no run has a reward."""

    @property
    def error_rate(self) -> float | None:
        """Share of the runs that failed; None where these are too few."""
        return self.failed / self.runs if self.runs >= LEAST else None


def model_figures(view: LoopView, serving: Serving) -> list[ModelFigures]:
    """Return the figures of the versions that are served, have just been, or have the newest runs."""
    served = dict.fromkeys(name for name in (*serving.versions, serving.previous) if name)
    names: Sequence[str] = [str(row[0]) for row in view.rows(_VERSIONS)]
    chosen = [*dict.fromkeys((*served, *names))][:MOST_VERSIONS]
    return [_figures(view, name) for name in chosen]


def _figures(view: LoopView, version: str) -> ModelFigures:
    runs, failed, rewarded, mean = view.rows(_FIGURES, (version,))[0]
    return ModelFigures(version, int(runs), int(failed), float(mean) if rewarded else None)

"""Violations of safety by a version that an evaluator or reviewer confirmed, each found once.

Feedback says so, or another evaluator's reward; either may come before its trajectory or long after it.
"""

from __future__ import annotations

from pytest_tfgrpo.production.deployment.serving import Ramp
from pytest_tfgrpo.production.view.view import FEEDBACKS, REWARDS, TRAJECTORIES, LoopView

_FEEDBACK = """NOT said.dead AND json_extract(said.slim, '$.component') = 'safety'
    AND json_extract(said.slim, '$.source') IN ('evaluator', 'reviewer')
    AND (said.type = 'score' AND json_extract(said.slim, '$.score') = 0
    OR said.type = 'label' AND json_extract(said.slim, '$.text') = 'violation')"""
_REWARD = """NOT said.own AND NOT said.dead
    AND json_extract(said.slim, '$.reward_components.safety.score') = 0
    AND json_extract(said.slim, '$.reward_components.safety.source') IN ('evaluator', 'reviewer')"""
_NEW = """SELECT said.id FROM {table} said JOIN trajectories t ON t.id = said.trajectory_id
    WHERE said.seq > ? AND t.policy_version = ? AND {confirmed}"""
_OF_NEW = """SELECT said.id FROM trajectories t JOIN {table} said ON said.trajectory_id = t.id
    WHERE t.seq > ? AND t.policy_version = ? AND {confirmed}"""
_TABLES = (("feedback", FEEDBACKS, _FEEDBACK), ("rewards", REWARDS, _REWARD))


class Violations:
    """Those of one version since its ramp began, or of a run since then."""

    def __init__(self, ramp: Ramp) -> None:
        """`ramp` has its positions on the bus."""
        self._version = ramp.version
        self._at = dict(zip((FEEDBACKS, REWARDS), ramp.said_positions, strict=True))
        self._at[TRAJECTORIES] = ramp.step_positions[0]
        self._found: set[str] = set()

    def count(self, view: LoopView) -> int:
        """Return how many there are, by what is new in the view; raises BusError."""
        upto = {stream: view.position(stream) for stream in self._at}
        for table, stream, confirmed in _TABLES:
            for query, since in ((_NEW, self._at[stream]), (_OF_NEW, self._at[TRAJECTORIES])):
                rows = view.rows(query.format(table=table, confirmed=confirmed), (since, self._version))
                self._found.update(id_ for (id_,) in rows)
        self._at = upto
        return len(self._found)

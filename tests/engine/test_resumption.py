"""Which answers on file a resumed run takes, and what it keeps of the others."""

from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_group, make_rollout

from pytest_tfgrpo.core.records import CheckerResult
from pytest_tfgrpo.engine.resumption import Journaled, note_answered

FOUND = CheckerResult(outcome="score", score=1.0)


class Resumed:
    """A resumed run in pieces, with what became of its answers on file."""

    def __init__(self, *rollouts: Any, found: Any = (), torn: Any = (), asks: bool = True) -> None:
        self.abandoned: list[Any] = []
        self.known: list[tuple[str, bool]] = []
        self.asks = asks
        resumed = SimpleNamespace(
            rollouts={r.rollout_id: r for r in rollouts}, checker_results=dict.fromkeys(found, FOUND)
        )
        self.context: Any = SimpleNamespace(
            job=SimpleNamespace(resumed=resumed, made_of=lambda scenario: ("made", "of", scenario.id)),
            breaker=SimpleNamespace(
                know=lambda slot, answered: self.known.append((slot.rollout_id, answered))
            ),
            workspaces=SimpleNamespace(left=lambda id_, *made: None if "lost" in id_ else (id_, *made)),
        )
        lineup: Any = SimpleNamespace(torn={r.rollout_id: r for r in torn}, slot=lambda id_: self.slot(id_))
        ledger: Any = SimpleNamespace(abandon=self.abandoned.append)
        self.lineup = lineup
        self.journaled = Journaled(self.context, lineup, ledger)

    def slot(self, rollout_id: str, checker: Any = None, fixtures: Any = None) -> Any:
        scenario = SimpleNamespace(id="s", checker=checker, fixtures=fixtures)
        return SimpleNamespace(
            rollout_id=rollout_id,
            phase=SimpleNamespace(asks=self.asks),
            question=SimpleNamespace(scenario=scenario),
            call=SimpleNamespace(workspace="fresh"),
        )


@pytest.mark.parametrize(
    ("changes", "checker", "fixtures", "found", "workspace"),
    [
        ({}, None, None, (), "fresh"),
        ({}, "test", None, (), ("r", "made", "of", "s")),
        ({}, "test", None, ("r",), "fresh"),
        ({"status": "failed"}, "test", None, (), "fresh"),
        ({}, "test", (), (), None),
        ({}, "test", (), ("r",), "fresh"),
        ({"rollout_id": "lost"}, "test", None, (), None),
        ({"rollout_id": "lost"}, None, None, (), "fresh"),
    ],
)
def test_an_answer_on_file_is_taken_unless_its_test_needs_a_workspace_that_is_gone(
    changes: Any, checker: Any, fixtures: Any, found: Any, workspace: Any
) -> None:
    rollout = make_rollout(0, **{"rollout_id": "r"} | changes)
    run = Resumed(rollout, found=found)
    known = run.journaled.find(run.slot(rollout.rollout_id, checker, fixtures))
    if workspace is None:
        assert (known, run.abandoned, run.known) == (None, [rollout], [])
    else:
        assert known == (rollout, workspace, True)
        assert (run.abandoned, run.known) == ([], [(rollout.rollout_id, rollout.status == "ok")])


def test_a_torn_answer_is_on_the_bill_once_and_what_is_not_on_file_is_made() -> None:
    torn = make_rollout(0, rollout_id="r")
    run = Resumed(torn=(torn,))
    assert (run.journaled.find(run.slot("r")), run.journaled.find(run.slot("r"))) == (None, None)
    assert (run.abandoned, run.lineup.torn, run.known) == ([torn], {}, [])
    given = Resumed(torn, asks=False)
    assert given.journaled.find(given.slot("r")) is not None
    assert given.known == []


def test_the_first_group_on_file_that_was_answered_shows_that_its_provider_works() -> None:
    groups = [
        make_group([None, 1.0], scenario_id="a"),
        make_group([1.0, None], scenario_id="b"),
        make_group([1.0], scenario_id="c"),
    ]
    run = Resumed()
    note_answered(groups, run.context, run.lineup)
    assert run.known == [("b", True)]
    given = Resumed(asks=False)
    note_answered(groups, given.context, given.lineup)
    assert given.known == []

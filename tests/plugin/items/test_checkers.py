"""What the outcome of a marked test function means."""

from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_rollout

from pytest_tfgrpo.core.records import CheckerResult, Failure
from pytest_tfgrpo.plugin.fixtures import fixture_agents
from pytest_tfgrpo.plugin.items import markers
from pytest_tfgrpo.plugin.items.checkers import Checkers, SkipJudged, _first_line


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (AssertionError("  \n assert 1 == 2\n more"), "assert 1 == 2"),
        (AssertionError(), "AssertionError"),
        (ValueError("<object at 0x7f01> and 0x7f02>"), "<object> and 0x7f02>"),
        (ValueError("x" * 400), "x" * 300),
    ],
)
def test_the_reason_of_a_failure_is_its_first_line_without_addresses(error: Exception, line: str) -> None:
    assert _first_line(error) == line


JUDGED, RESUMED = (CheckerResult(outcome="score", score=score) for score in (0.25, 0.75))


def checkers(*, world: bool = False) -> Any:
    """Return what stands around the items of a run that judged one rollout, and has one on file."""
    made: Any = Checkers.__new__(Checkers)
    resumed = {make_rollout(n).rollout_id: RESUMED for n in (1, 2)}
    made._live = SimpleNamespace(
        job=SimpleNamespace(resumed=SimpleNamespace(checker_results=resumed)), agent="a"
    )
    made._worlds = frozenset({"count-words"} if world else ())
    made._judged = {make_rollout().group_id: {2: JUDGED}}
    return made


@pytest.mark.parametrize(
    ("changes", "outcome", "reason"),
    [
        (
            {"status": "error", "failure": Failure(code="x", message="no key")},
            "error",
            "no answer to check: no key",
        ),
        (
            {"status": "failed", "failure": Failure(code="x", message="late")},
            "score",
            "no answer to check: late",
        ),
        ({"status": "failed"}, "score", "no answer to check: failed"),
    ],
)
def test_a_rollout_without_an_answer_is_decided(changes: Any, outcome: str, reason: str) -> None:
    found = checkers().decided(make_rollout(7, **changes))
    assert (found.outcome, found.score, found.reason.strip()) == (outcome, 0.0, reason)


@pytest.mark.parametrize(
    ("index", "world", "found"),
    [(0, True, None), (1, False, RESUMED), (1, True, RESUMED), (2, False, RESUMED), (2, True, JUDGED)],
)
def test_what_is_on_file_decides_and_with_fixtures_what_was_judged_before(
    index: int, world: bool, found: CheckerResult | None
) -> None:
    assert checkers(world=world).decided(make_rollout(index)) is found


@pytest.mark.parametrize(
    ("result", "ends"),
    [
        (None, None),
        (CheckerResult(outcome="score", score=1.0), True),
        (CheckerResult(outcome="score", score=0.5, reason="half"), pytest.fail.Exception),
        (CheckerResult(outcome="error", reason="half"), pytest.fail.Exception),
        (CheckerResult(outcome="skip", reason="half"), pytest.skip.Exception),
    ],
)
def test_a_function_does_not_run_where_its_rollout_is_decided(
    result: CheckerResult | None, ends: Any
) -> None:
    stand_in: Any = SimpleNamespace(judges=lambda _: True, rollout=lambda _: None, decided=lambda _: result)
    item: Any = SimpleNamespace()
    if ends is None or ends is True:
        assert SkipJudged(stand_in).pytest_pyfunc_call(item) is ends
    else:
        with pytest.raises((pytest.fail.Exception, pytest.skip.Exception), match="half") as ended:
            SkipJudged(stand_in).pytest_pyfunc_call(item)
        assert ended.type is ends
    stand_in.judges = lambda _: False
    assert SkipJudged(stand_in).pytest_pyfunc_call(item) is None


@pytest.mark.parametrize(
    ("fixtures", "lost", "set_up", "agents"),
    [
        (None, [], [], []),
        ((None, "db"), [False], ["db"], ["the job's"]),
        (("agent", "db", "net"), [False], ["db", "net", "agent"], ["agent of agent"]),
        (("agent",), [True], ["agent", "agent"], ["agent of agent"] * 2),
        ((None, "db"), [True], ["db", "db"], ["the job's"] * 2),
    ],
)
def test_an_agents_fixtures_are_set_up_and_once_more_where_its_provider_was_away(
    fixtures: Any, lost: list[bool], set_up: list[str], agents: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: Any = Checkers.__new__(Checkers)
    asked, supplied, renewed = [], [], []

    def value_of(name: str) -> str:
        asked.append(name)
        return f"value of {name}"

    def agent_of(name: str, value: object, post: object) -> str:
        assert (value, post) == (f"value of {name}", "post")
        return f"agent of {name}"

    monkeypatch.setattr(markers, "base_id", lambda item: item)
    monkeypatch.setattr(markers, "slot_of", lambda item: SimpleNamespace(epoch=2, index=1))
    monkeypatch.setattr(fixture_agents, "fixture_agent", agent_of)
    made._scenarios = {"item": SimpleNamespace(id="a", fixtures=fixtures)}
    made._live = SimpleNamespace(
        post="post",
        job=SimpleNamespace(actor="the job's"),
        supply=lambda *given: supplied.append(given),
        is_lost=lambda *place: lost.pop(),
    )
    made._fresh = SimpleNamespace(renew=renewed.append)
    made.set_up("item", value_of)
    made.set_up("of another run", value_of)
    assert (asked, supplied) == (set_up, [(2, "a", 1, agent) for agent in agents])
    assert renewed == ["item"] * (len(agents) - 1)
    assert lost == []


def test_an_item_without_its_mark_is_misuse(monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = Checkers.__new__(Checkers)
    monkeypatch.setattr(markers, "base_id", lambda item: item.nodeid)
    monkeypatch.setattr(markers, "slot_of", lambda item: item.slot)
    entered: list[int] = []
    made._scenarios = {"known": SimpleNamespace(id="a")}
    made._live = SimpleNamespace(enter=entered.append, rollout=lambda *place: place)
    slot = SimpleNamespace(epoch=2, index=1)
    for name, place in (("known", None), ("unknown", slot)):
        with pytest.raises(pytest.UsageError, match=f"{name}: the mark `tfgrpo` is missing on the test"):
            made._wait_for(SimpleNamespace(nodeid=name, slot=place))
    assert entered == []
    assert made._wait_for(SimpleNamespace(nodeid="known", slot=slot)) == (2, "a", 1)
    assert entered == [2]

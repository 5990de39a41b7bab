"""The figures of the loop, from rows of the view."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.loop_events import feedback, judged, publish, rewarded, trajectory
from support.loop_spans import trace_id

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.events import SCHEMAS, TRAJECTORY, EventFault, derived_id
from pytest_tfgrpo.core.wire.schema import load_schema
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.numerics.stats import mean_interval
from pytest_tfgrpo.production.assembly.state import AssemblyState
from pytest_tfgrpo.production.assembly.trace_events import ASSEMBLER
from pytest_tfgrpo.production.bus.dead_letters import MAX_DELIVERIES_CODE
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.streams import AUDIT_SUBJECT, SPANS_SUBJECT
from pytest_tfgrpo.production.report.dead_codes import DEAD_CODES
from pytest_tfgrpo.production.report.figure_lines import report_lines
from pytest_tfgrpo.production.report.figures import (
    LoopReport,
    NewestTrajectories,
    ShownTrajectory,
    find_shown,
    flat_figures,
    report_of,
    tasks_of,
    versions_of,
)
from pytest_tfgrpo.production.report.status import JobStatus, LoopStatus, status_lines, status_of
from pytest_tfgrpo.production.report.trajectory_lines import shown_lines
from pytest_tfgrpo.production.view import queries
from pytest_tfgrpo.production.view.queries import LoopTrajectory
from pytest_tfgrpo.production.view.view import NO_TRAJECTORY, LoopView
from pytest_tfgrpo.storage.lease import Lease
from pytest_tfgrpo.telemetry.traces.turns import RefusedTrace


def row(
    id_: str, total: float | None, *, session: str = "s", task: str | None = "t", version: str | None = "v1"
) -> LoopTrajectory:
    return LoopTrajectory(
        id=id_,
        sequence=1,
        session=session,
        domain="general",
        task_key=task,
        policy_version=version,
        trace_id=None,
        total=total,
        silent=0,
    )


def test_the_session_of_a_user_is_the_unit_of_an_interval() -> None:
    totals = [n % 10 / 10 for n in range(60)]
    found = versions_of(row(str(n), totals[n], session=f"s{n // 3}") for n in range(60))
    expected = mean_interval(totals, [n // 3 for n in range(60)])
    assert (found[0].runs, found[0].sessions) == (60, 20)
    assert found[0].mean == pytest.approx(expected.mean)
    assert found[0].low is not None
    assert found[0].low > 0
    apart = versions_of(row(str(n), totals[n], session=str(n)) for n in range(60))
    assert apart[0].low != found[0].low


def test_an_interval_needs_eight_sessions() -> None:
    (found,) = versions_of(row(str(n), n / 60, session=f"s{n % 7}") for n in range(60))
    assert (found.low, found.high) == (None, None)


def test_the_order_of_arrival_changes_no_figure() -> None:
    rows = [row(str(n), (n * 7 % 11) / 11, session=f"s{n % 12}", task=f"t{n % 5}") for n in range(50)]
    assert versions_of(rows) == versions_of(rows[::-1])
    assert tasks_of(rows) == tasks_of(rows[::-1])


def test_trajectories_without_a_reward_or_version_are_no_zero() -> None:
    found = versions_of([row("a", 0.5, version=None), row("b", None), row("c", 0.7, version="v2")])
    assert [(one.policy_version, one.runs, one.mean) for one in found] == [(None, 1, 0.5), ("v2", 1, 0.7)]


def test_kinds_of_task_with_few_attempts_come_after_the_others() -> None:
    rows = [row(f"a{n}", 0.3, task="often") for n in range(3)] + [row("b", 0.0, task="once")]
    rows += [row("c", 0.0, task=None), row("d", None, task="unknown")]
    assert [one.task_key for one in tasks_of(rows)] == ["often", "once"]


def test_good_and_bad_attempts_are_counted_by_their_thresholds() -> None:
    (task,) = tasks_of(row(f"a{n}", total) for n, total in enumerate((0.4, 0.41, 0.69, 0.7, 1.0, 0.0)))
    assert (task.good, task.bad) == (2, 2)
    assert (task.worst, task.best) == (("a5", "a0", "a1"), "a4")


def test_kinds_of_task_and_versions_of_two_domains_are_apart() -> None:
    rows = [row("a", 0.2), row("b", 0.4)._replace(domain="coding")]
    assert [(one.domain, one.runs) for one in tasks_of(rows)] == [("general", 1), ("coding", 1)]
    assert [(one.domain, one.runs) for one in versions_of(rows)] == [("coding", 1), ("general", 1)]


MISSING = LoopReport(
    published={"RL_FEEDBACK": 1, "RL_TRAINING": 2, "RL_DEPLOYMENTS": 0},
    redacted={"email": 3},
    opted_out=1,
    forgotten=1,
    dead={"no_run": 1200, "schema": 2},
    rewards=1,
    revisions=1,
    unrewarded=1,
    newest=NewestTrajectories(
        looked_at=1234,
        versions=(),
        worst=(),
        mixed=(),
        failed=34,
        one_failed="7f20993f-7ec6-5fa2-b2c6-3e17c06728a4",
        without_task=1,
        without_texts=1000,
        without_session=12,
    ),
    late=1700,
    trajectory_revisions=3,
)


def test_a_report_says_what_is_missing_and_what_to_do(golden: Callable[[str, str], None]) -> None:
    golden("loop-report-missing.txt", "\n".join(report_lines(MISSING)) + "\n")
    newest = replace(MISSING.newest, failed=0, without_texts=0, without_session=0)
    whole = replace(MISSING, dead={}, newest=newest, late=0, trajectory_revisions=0)
    labels = [text.split()[0] for text in report_lines(whole)]
    assert not {"failed", "texts", "sessions", "late"} & set(labels)
    assert "dead       none" in report_lines(whole)


def test_late_spans_and_revisions_are_said_if_there_are_any_of_either() -> None:
    for late, revisions in ((0, 3), (5, 0), (0, 0)):
        found = [*report_lines(replace(MISSING, late=late, trajectory_revisions=revisions))]
        assert any(text.startswith("late ") for text in found) is bool(late or revisions)


def test_each_code_of_dead_letters_has_its_line_below_one_label() -> None:
    found = [text for text in report_lines(MISSING) if "no_run" in text or "2 schema" in text]
    assert [text[:11].strip() for text in found] == ["dead", ""]


@pytest.mark.parametrize(("count", "listed", "more"), [(20, 20, False), (21, 20, True)])
def test_of_many_mixed_tasks_some_are_named(count: int, listed: int, more: bool) -> None:
    rows = [
        row(f"{part}{n:07}-x", total, task=f"task-{n}")
        for n in range(count)
        for part, total in (("g", 0.9), ("b", 0.1))
    ]
    tasks = tasks_of(rows)
    newest = replace(MISSING.newest, versions=tuple(versions_of(rows)), mixed=tuple(tasks))
    found = [*report_lines(replace(MISSING, newest=newest))]
    head = next(n for n, text in enumerate(found) if f"{count} tasks with good" in text)
    assert ("such as" in found[head]) is more
    assert len(found) - head - 2 == listed
    assert found[head + 2].split()[-2:] == ["g0000000", "b0000000"]


def test_a_version_with_an_interval_does_not_hide_that_another_has_none() -> None:
    rows = [row(str(n), n / 60, session=f"s{n}") for n in range(60)] + [row("x", 0.5, version="v2")]
    newest = replace(MISSING.newest, versions=tuple(versions_of(rows)), worst=tuple(tasks_of(rows)))
    found = [*report_lines(replace(MISSING, newest=newest))]
    assert [one.low is None for one in newest.versions] == [False, True]
    assert any(text.startswith("no interval: ") for text in found)
    assert any(text.endswith(" 0 1") for text in found), "the two worst"


def test_the_report_counts_what_was_left_out_and_names_a_few_tasks(bus: Bus, tmp_path: Path) -> None:
    totals = {f"t{n}": [0.9, 0.1] * (1 + n % 2) for n in range(7)}
    names = {f"{task} {n}": task for task, values in totals.items() for n in range(len(values))}
    events = [
        trajectory(name, task={"domain": "coding", "task_key": task}, session=name, task_status="failed")
        for name, task in names.items()
    ]
    publish(bus, [*events, trajectory("alone", task={"domain": "coding"})])
    publish(bus, [rewarded(f"{task} {n}", total) for task in totals for n, total in enumerate(totals[task])])
    for number, action in enumerate(("opt_out", "opt_out", "forget")):
        said = json.dumps({"action": action, "what": "trace"}).encode()
        bus.publish([replace(events[0], id=derived_id(str(number)), subject=AUDIT_SUBJECT, data=said)])
    with closing(LoopView(tmp_path / "view.db")) as view:
        view.catch_up(bus)
        found = report_of(bus, view, 100)
    newest = found.newest
    assert (found.opted_out, found.forgotten, newest.without_task) == (2, 1, 1)
    assert (len(newest.worst), len(newest.mixed)) == (5, 7)
    assert [one.task_key for one in newest.mixed[:3]] == ["t1", "t3", "t5"]
    assert newest.one_failed == min(map(derived_id, names))


def test_figures_as_json_stand_side_by_side() -> None:
    assert list(flat_figures(MISSING)) == [
        *("published", "redacted", "opted_out", "forgotten", "dead", "rewards", "revisions", "unrewarded"),
        *("looked_at", "versions", "worst", "mixed", "failed", "one_failed"),
        *("without_task", "without_texts", "without_session", "late", "trajectory_revisions"),
    ]


def test_every_code_of_a_dead_letter_has_a_meaning() -> None:
    of_live = {RefusedTrace.DUPLICATE, RefusedTrace.BAD_MARK}
    codes = {*EventFault, *RefusedTrace} - of_live | {NO_TRAJECTORY, MAX_DELIVERIES_CODE}
    assert set(DEAD_CODES) == set(map(str, codes))


def test_what_is_missing_is_counted_from_the_streams(bus: Bus, tmp_path: Path) -> None:
    events = [
        trajectory("a", text=""),
        trajectory("b", session=trace_id(2), metadata={"trace_id": trace_id(2)}, task_status="failed"),
    ]
    for number, event in enumerate(events):
        payload = json.loads(event.data)
        payload["task_context"].pop("instructions", None)
        payload["metadata"]["revision"] = 3 if number else 1
        events[number] = replace(event, data=json.dumps(payload).encode())
    publish(bus, events)
    lease = Lease(bus, ASSEMBLER, "one")
    assert lease.hold()
    lease.publish([], AssemblyState(late=4).value())
    with closing(LoopView(tmp_path / "view.db")) as view:
        view.catch_up(bus)
        found = report_of(bus, view, 10)
        newest = found.newest
        assert (newest.without_texts, newest.without_session, newest.looked_at) == (1, 1, 2)
        assert (found.late, found.trajectory_revisions) == (4, 2)
        assert (newest.failed, newest.one_failed) == (1, derived_id("b"))
        assert report_of(bus, view, 1).newest.without_texts == 0


HOSTILE = "\x1b]0;owned\x07\u202e\x00\ud800 ::error::x\r\n" + "x" * 300 + "\t" + "\U0001f600" * 100


def test_no_text_from_outside_reaches_the_terminal_as_it_is_or_is_wider_than_80_columns() -> None:
    turn = {
        "turn_id": HOSTILE,
        "timestamp": HOSTILE,
        "observation": {"type": "user_message", "content": {HOSTILE: [HOSTILE]}},
        "thought_process": [HOSTILE, None, 3],
        "action": {"type": "tool_call", "tool_name": HOSTILE, "tool_args": HOSTILE},
        "result": {"success": False, "output": HOSTILE, "error": HOSTILE, "execution_time_ms": HOSTILE},
    }
    hostile = ShownTrajectory(
        trajectory={
            "trajectory_id": HOSTILE,
            "turns": [turn, None, 3, [HOSTILE]],
            "metadata": {"model": HOSTILE, "total_tokens": HOSTILE, "total_cost_usd": HOSTILE},
            "outcome": {HOSTILE: HOSTILE},
        },
        feedback=({"type": HOSTILE, "text": HOSTILE}, HOSTILE),
        rewards=(
            {"total_reward": HOSTILE, "reward_components": {HOSTILE: {"reasoning": HOSTILE}, "a": None}},
        ),
    )
    newest = replace(
        MISSING.newest,
        versions=tuple(versions_of([row("3f2504e0-4f89", 0.1, version=HOSTILE)])),
        worst=tuple(tasks_of([row("3f2504e0-4f89", 0.1, task=HOSTILE)])),
        mixed=tuple(
            tasks_of([row("3f2504e0-4f89", 0.1, task=HOSTILE), row("3f2504e0-4f89", 0.9, task=HOSTILE)])
        ),
    )
    report = replace(MISSING, dead={HOSTILE: 1}, newest=newest)
    for limit in (600, None):
        lines = [*shown_lines(hostile, limit), *report_lines(report)]
        for line in lines:
            assert line.isprintable()
            assert len(line) <= 80
        assert any("\\x1b]0;owned" in line for line in lines)


def test_a_value_that_is_nested_too_deeply_does_not_keep_the_rest_from_being_shown() -> None:
    deep: Json = []
    for _ in range(100_000):
        deep = [deep]
    data = {"trajectory_id": "a", "turns": [{"observation": {"type": "tool_result", "content": deep}}]}
    lines = list(shown_lines(ShownTrajectory(trajectory=data, feedback=(), rewards=())))
    assert "nested too deeply" in "\n".join(lines)


def test_a_reward_says_that_safety_blocked_it_and_which_revision_it_is() -> None:
    def said(**metadata: Json) -> list[str]:
        data = {"total_reward": 0.0, "timestamp": "2026-01-01T00:00:00Z", "metadata": metadata}
        shown = ShownTrajectory(trajectory={"trajectory_id": "a"}, feedback=(), rewards=(data,))
        return [" ".join(one.split()) for one in shown_lines(shown)]

    blocked = "blocked by safety: the reward is 0"
    assert [blocked in said(hard_gate=value) for value in (True, False, 1, None)] == [
        True,
        False,
        False,
        False,
    ]
    assert not any("revision" in one for one in said())
    assert any("revision 2" in one for one in said(revision=2))


def test_tool_calls_and_failures_are_shown_turn_by_turn(golden: Callable[[str, str], None]) -> None:
    data = json.loads(json.dumps(load_schema(SCHEMAS[TRAJECTORY])["examples"][0]))
    failing = {
        "turn_id": 3,
        "observation": {"type": "tool_result", "content": "Orders 17 and 23."},
        "action": {"type": "tool_call", "tool_name": "mail", "tool_args": {"to": ["a", "b"]}},
        "result": {"success": False, "error": "no such address\nask for another one"},
    }
    data["turns"].append(failing)
    shown = ShownTrajectory(trajectory=data, feedback=(), rewards=())
    golden("loop-show-calls.txt", "\n".join(shown_lines(shown)) + "\n")


def test_a_trajectory_is_shown_with_all_that_is_known_of_it() -> None:
    data = {
        "trajectory_id": "a",
        "session_id": "chat-17",
        "agent_id": "bot",
        "task_context": {"task_key": "late", "task_id": "t-7", "domain": "coding"},
        "metadata": {"user_ref": "u-1", "policy_version": "v2", "model": "small", "total_tokens": 0},
        "outcome": {"task_status": "failed", "completion": 0, "safety_blocked": False},
        "turns": [
            {
                "action": {"type": "subordinate_call", "tool_name": "mail", "tool_args": {}},
                "result": {"success": False, "error": "no address"},
            },
            {
                "observation": {"type": "tool_result", "content": "no address"},
                "action": {"type": "response"},
                "result": {"output": "It failed.", "success": False},
            },
        ],
    }
    said = {
        "type": "score", "component": "tone", "score": 0.25, "source": "reviewer", "text": "rude",
        "expected": "kind",
    }  # fmt: skip
    shown = ShownTrajectory(trajectory=data, feedback=(said,), rewards=())
    found = [" ".join(text.split()) for text in shown_lines(shown)]
    expected = (
        "session chat-17, u-1",
        "agent bot, v2, small",
        "task late, t-7 (coding)",
        "outcome task_status failed, completion 0",
        "cost 0 tokens",
        "called mail {}",
        "failed no address",
        "answer It failed.",
        "failed no reason is known",
        "feedback score tone 0.25, reviewer",
        "text rude",
        "expected kind",
    )
    assert [text for text in found if text in expected] == list(expected)
    assert not any(text.startswith("saw") for text in found)


def test_a_status_says_what_is_behind_late_and_waiting():
    behind = LoopStatus(
        bus="file:x",
        published={"RL_SPANS": 4},
        jobs={
            "assembler": JobStatus(behind=1234, holder="host:7"),
            "evaluator": JobStatus(behind=0, holder=""),
        },
        late=5000,
        waiting=12,
        dead={},
    )
    text = "\n".join(status_lines(behind))
    assert "1,234 events behind; lease of host:7" in text
    assert "up to date; nobody holds its lease" in text
    assert "5,000 spans came after the trajectory of their trace" in text
    assert "12 for a trajectory that is not here yet" in text
    whole = "\n".join(status_lines(replace(behind, late=0, waiting=0)))
    assert "late" not in whole
    assert "waiting" not in whole


def test_a_trajectory_is_shown_by_the_start_of_its_id_with_all_that_was_said_of_it(bus: Bus, tmp_path: Path):
    said = [
        feedback("f", "thumbs_up", "a"),
        feedback("g", "rating", "a", rating=2),
        judged("j", "a", style=0.5),
    ]
    publish(
        bus,
        [trajectory(str(n)) for n in range(20)],
        [trajectory("a"), *said],
        [feedback("x", "thumbs_up", "1")],
    )
    with closing(LoopView(tmp_path / "view.db")) as view:
        view.catch_up(bus)
        found = find_shown(view, bus, f"  {derived_id('a')[:30].upper()} ")
        assert found.trajectory["trajectory_id"] == derived_id("a")
        assert [one["type"] for one in found.feedback] == ["thumbs_up", "rating"]
        assert [one["reward_components"]["style"]["score"] for one in found.rewards] == [0.5]
        first = sorted(queries.trajectories(view), key=lambda one: one.id)
        start = first[0].id[0]
        alike = [one.id for one in first if one.id.startswith(start)]
        if len(alike) > 1:
            with pytest.raises(StoreError) as raised:
                find_shown(view, bus, start)
            assert str(raised.value) == (
                f"several trajectories start with {start!r}, such as {', '.join(alike[:3])}; name one"
            )
        for missing in ("", "  ", "nobody"):
            with pytest.raises(StoreError, match=f"no trajectory on the bus has the id '{missing}'"):
                find_shown(view, bus, missing)
        bus.delete("RL_TRAJECTORIES", [trajectory("a").id])
        with pytest.raises(StoreError, match="is no longer on the bus, which keeps it 30 days"):
            find_shown(view, bus, derived_id("a"))


def test_a_status_counts_what_jobs_have_not_seen_and_what_waits(bus: Bus, tmp_path: Path):
    waiting = [feedback("f", "thumbs_up", "nobody"), judged("j", "nobody", style=0.5)]
    publish(bus, [trajectory("a"), feedback("g", "thumbs_up", "a")], waiting)
    bus.publish([replace(trajectory(str(n)), subject=SPANS_SUBJECT) for n in range(3)])
    with closing(LoopView(tmp_path / "view.db")) as view:
        view.catch_up(bus)
        found = status_of(bus, view, "the bus")
        assert found.published["RL_SPANS"] == 3
        assert (found.bus, found.waiting, found.late, found.dead) == ("the bus", 2, 0, {})
        assert found.jobs == {
            "assembler": JobStatus(behind=3, holder=""),
            "evaluator": JobStatus(behind=4, holder=""),
        }
        for job, owner in ((ASSEMBLER, "host-1"), ("evaluator", "host-2")):
            assert Lease(bus, job, owner).hold()
        jobs = status_of(bus, view, "").jobs
    assert [job.holder for job in jobs.values()] == ["host-1", "host-2"]


def test_versions_are_in_order_and_tasks_worst_first_with_their_ids() -> None:
    rows = [
        row(f"{task}{n}", total, task=task)
        for task, totals in TOTALS.items()
        for n, total in enumerate(totals)
    ]
    found = tasks_of(rows)
    assert [(one.task_key, one.runs, one.good, one.bad) for one in found] == [
        ("bad", 4, 0, 2), ("mixed", 3, 1, 1), ("good", 3, 3, 0), ("few", 2, 0, 2),
    ]  # fmt: skip
    assert (found[0].worst, found[0].best) == (("bad3", "bad0", "bad2"), "bad1")
    assert found[0].mean == pytest.approx(0.4125)
    versions = versions_of(
        [row("a", 0.5, version=None), row("b", 0.5, version="v2"), row("c", 0.5, version="v1")]
    )
    assert [one.policy_version for one in versions] == [None, "v1", "v2"]


TOTALS = {
    "good": (0.7, 0.9, 0.8),
    "few": (0.0, 0.1),
    "mixed": (0.4, 0.5, 0.7),
    "bad": (0.4, 0.45, 0.41, 0.39),
}

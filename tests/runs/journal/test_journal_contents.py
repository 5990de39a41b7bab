"""Journals that a kill cut short, or that somebody edited by hand."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_experience, make_group, make_rollout
from support.jobs import ScriptedActor, make_job, run_job, three_or_not
from support.metrics.costs import call

from pytest_tfgrpo.core.errors import JournalError, ResumeError
from pytest_tfgrpo.core.files import JOURNAL, run_folder
from pytest_tfgrpo.core.lessons import Library, Revision
from pytest_tfgrpo.core.records import (
    CheckerResult,
    EndpointUse,
    Failure,
    JudgeResult,
    Phase,
    PhaseResult,
    PriceUse,
)
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.runs.journal import stored_groups
from pytest_tfgrpo.runs.journal.journal import SCHEMA, encode
from pytest_tfgrpo.runs.journal.journal_contents import (
    JournalContents,
    library_at_start,
    list_runs,
    load_run,
    read_log,
    read_to_resume,
    run_of,
)
from pytest_tfgrpo.runs.journal.journal_contents import (
    finished as finished_of,
)
from pytest_tfgrpo.runs.journal.settled_groups import SettledCost, SettledGroups, UnsettledError
from pytest_tfgrpo.runs.journal.stored_groups import StoredGroups
from pytest_tfgrpo.runs.judgement import judged
from pytest_tfgrpo.runs.resumable import find_resumable


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("once")
    folder = run_folder(root, "demo", "run1")
    run_job(make_job(ScriptedActor(three_or_not), root), folder)
    return folder


@pytest.fixture
def finished(once: Path, tmp_path: Path) -> Path:
    folder = run_folder(tmp_path, "demo", "run1")
    shutil.copytree(once, folder)
    return folder


SKIP = CheckerResult(outcome="skip", reason="not here")
BROKE = CheckerResult(outcome="error", reason="boom")
FOUND = CheckerResult(outcome="score", score=0.5, reason="half")
SILENT = JudgeResult(score=None, reason="no verdict")
KIND = JudgeResult(score=1.0)


@pytest.mark.parametrize(
    ("checker_result", "opinion", "decisive", "status", "code", "credited"),
    [
        (None, None, True, "ok", None, [0.0]),
        (FOUND, None, False, "ok", None, [0.5]),
        (SKIP, None, False, "ok", None, [0.0]),
        (BROKE, None, False, "error", "checker", []),
        (None, KIND, True, "ok", None, [0.0]),
        (FOUND, SILENT, False, "ok", None, [0.5]),
        (FOUND, SILENT, True, "error", "judge", []),
        (BROKE, SILENT, True, "error", "checker", []),
    ],
)
def test_a_rollout_is_judged_by_its_checker_and_where_it_decides_by_the_judge(
    checker_result: CheckerResult | None,
    opinion: JudgeResult | None,
    decisive: bool,
    status: str,
    code: str | None,
    credited: list[float],
) -> None:
    rollout = judged(make_rollout(0, 0.0), checker_result=checker_result, opinion=opinion, decisive=decisive)
    assert (rollout.status, rollout.failure and rollout.failure.code) == (status, code)
    assert [check.credit for check in rollout.checks] == credited
    assert rollout.opinion == (None if checker_result == BROKE else opinion)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_run_killed_before_its_first_line_was_whole_is_no_run(
    tmp_path: Path, finished: Path, share: float
) -> None:
    first = (finished / JOURNAL).read_bytes().splitlines(keepends=True)[0]
    other = run_folder(tmp_path, "demo", "run2")
    other.mkdir()
    (other / JOURNAL).write_bytes(first[: int(share * len(first))])
    assert list_runs(tmp_path, "demo") == [finished]


@pytest.mark.parametrize("data", [[1], {"schema": SCHEMA}, {"schema": SCHEMA, "library": 5}, None])
def test_a_first_event_that_is_no_header_is_refused_by_name(finished: Path, data: Any) -> None:
    (finished / JOURNAL).write_bytes(encode(1, "run", data))
    with pytest.raises(JournalError, match="does not start as a journal"):
        read_log(finished)


def test_a_journal_of_another_version_is_refused_with_advice(finished: Path) -> None:
    path = finished / JOURNAL
    path.write_bytes(encode(1, "run", {"schema": "tfgrpo.journal/9", "new": "things"}))
    with pytest.raises(JournalError, match=r"but of 'tfgrpo.journal/9'; use the version"):
        read_log(finished)


def test_a_copied_journal_is_not_resumed_as_the_run_that_it_tells_of(tmp_path: Path, finished: Path) -> None:
    shutil.copytree(finished, finished.with_name("run2"))
    lines = (finished.with_name("run2") / JOURNAL).read_bytes().splitlines(keepends=True)
    (finished.with_name("run2") / JOURNAL).write_bytes(b"".join(lines[:9]))
    for wanted in ("run2", "latest"):
        with pytest.raises(ResumeError, match=r"run2/journal.jsonl is the journal of run 'run1'; rename its"):
            find_resumable(tmp_path, "demo", wanted, {"settings": "s"}, rollouts=2, unset="")


def test_events_that_do_not_fit_each_other_are_named_by_their_journal(finished: Path) -> None:
    lines = [json.loads(line) for line in (finished / JOURNAL).read_bytes().splitlines()]
    first = next(n for n, line in enumerate(lines) if line["event"] == "rollout")
    del lines[first]  # and the others get new numbers, as no accident does it
    text = b"".join(encode(n, line["event"], line["data"]) for n, line in enumerate(lines, start=1))
    (finished / JOURNAL).write_bytes(text)
    with pytest.raises(JournalError, match="is not a consistent journal: KeyError"):
        load_run(finished)


@pytest.mark.parametrize("event", ["rollout", "judgement", "group", "revision", "phase", "finish"])
@pytest.mark.parametrize("data", [[1], "x", {}, None, 10**400])
def test_an_event_of_the_wrong_shape_is_refused_by_line(finished: Path, event: str, data: Any) -> None:
    first = (finished / JOURNAL).read_bytes().splitlines(keepends=True)[0]
    (finished / JOURNAL).write_bytes(first + encode(2, event, data))
    with pytest.raises(JournalError, match=f":2: event '{event}' cannot be read"):
        read_log(finished)


def test_the_groups_of_a_long_run_stay_on_disk(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = load_run(finished)
    monkeypatch.setattr(stored_groups, "KEPT", 0)
    again = load_run(finished)
    assert {type(result.groups) for result in again.phases} == {StoredGroups}
    assert again == whole
    settled = SettledGroups()
    assert read_log(finished, settled).rollouts == {}


def test_a_journal_that_comes_back_to_a_group_is_read_as_before(finished: Path) -> None:
    journal = finished / JOURNAL
    before = run_of(read_log(finished))
    rows = journal.read_bytes().splitlines(keepends=True)
    seen = [json.loads(row) for row in rows]
    rollout = next(row for row in seen if row["event"] == "rollout")
    group = next(row for row in seen if row["event"] == "group" and row["data"]["group_id"] in str(rollout))
    for again in (rollout, group):
        rows.append(encode(len(rows) + 1, again["event"], again["data"]))
    journal.write_bytes(b"".join(rows))
    with pytest.raises(UnsettledError):
        read_log(finished, SettledGroups())
    assert load_run(finished) == run_of(read_log(finished)) == before


@pytest.mark.parametrize("event", ["judgement", "opinion", "abandoned"])
def test_what_comes_late_for_a_settled_group_is_read_in_memory(finished: Path, event: str) -> None:
    journal = finished / JOURNAL
    rows = [json.loads(row) for row in journal.read_bytes().splitlines()]
    rollout = next(row["data"] for row in rows if row["event"] == "rollout")
    known = {"rollout_id": rollout["rollout_id"]}
    data = {"judgement": to_wire(FOUND) | known, "opinion": to_wire(KIND) | known, "abandoned": rollout}
    journal.write_bytes(journal.read_bytes() + encode(len(rows) + 1, event, data[event]))
    with pytest.raises(UnsettledError):
        read_log(finished, SettledGroups())


@pytest.mark.parametrize("open_", ["away", "judged", ""])
def test_a_resumed_run_may_look_again_into_what_was_away_or_judged_by_a_test(
    finished: Path, open_: str
) -> None:
    away: Any = {"credit": None, "failure": Failure(code="provider", message="503")}
    one = attempt("train-0", **away if open_ == "away" else {})
    events = [("rollout", to_wire(one))]
    if open_ == "judged":
        events.append(("judgement", to_wire(FOUND) | {"rollout_id": one.rollout_id}))
    log = read_to_resume(begun(finished, *events, ("group", grouped(one))))
    assert log.settled_groups is not None
    assert [*log.rollouts] == ([one.rollout_id] if open_ else [])
    assert [*log.settled_groups.ids] == ([] if open_ else [one.group_id])


def test_a_journal_that_cannot_be_read_is_listed_for_who_reads_it_to_say_so(
    tmp_path: Path, finished: Path
) -> None:
    other = run_folder(tmp_path, "demo", "run2")
    (other / JOURNAL).mkdir(parents=True)
    assert list_runs(tmp_path, "demo") == [finished, other]


def with_header(folder: Path, change: Any) -> Path:
    """Change the first event of a journal in place."""
    journal = folder / JOURNAL
    first, *others = journal.read_bytes().splitlines(keepends=True)
    data = json.loads(first)["data"]
    change(data)
    journal.write_bytes(encode(1, "run", data) + b"".join(others))
    return folder


def test_any_check_of_any_scenario_whose_parameters_do_not_fit_is_named(finished: Path) -> None:
    def add(data: Any) -> None:
        checks = data["scenarios"][1]["checks"]
        checks.append({**checks[0], "params": {"value": 3}})

    with pytest.raises(JournalError, match="scenario 'train-1' has a check of kind 'exact': "):
        load_run(with_header(finished, add))


def test_a_killed_run_has_the_warnings_that_it_began_with(finished: Path) -> None:
    run = load_run(with_header(begun(finished), lambda data: data.update(warnings=["beware"])))
    assert (run.reason, run.warnings) == ("killed", ("beware",))


def test_the_end_of_a_run_says_what_its_endpoints_and_prices_were(finished: Path) -> None:
    endpoint = EndpointUse(
        endpoint="https://x", concurrency=4, lowest=2, highest=8, found=True, calls=9, refused=1
    )
    price = PriceUse(model="openai:m", table="own")
    end = {"status": "complete", "reason": "", "finished_at": "T1", "warnings": ["w"]}
    end |= {"endpoints": [to_wire(endpoint)], "prices": [to_wire(price)]}
    run = load_run(begun(finished, ("finish", end)))
    assert (run.endpoints, run.prices, run.warnings, run.finished_at) == ((endpoint,), (price,), ("w",), "T1")


def test_errors_of_an_absent_provider_are_asked_again_unless_their_phase_has_ended(finished: Path) -> None:
    log = read_log(finished)
    sweep = [id_ for id_, rollout in log.rollouts.items() if rollout.mode == "eval"]
    log.away.update(sweep[:1])
    log.reopen()
    assert sweep[0] in log.rollouts
    log.phases.clear()
    log.reopen()
    assert sweep[0] not in log.rollouts


def test_the_library_at_the_start_of_a_run_is_in_its_first_line(finished: Path) -> None:
    known = load_run(finished)
    assert library_at_start(finished).experiences == ()
    assert known.library.experiences != ()
    for data in ({"library": 5}, {}, []):
        (finished / JOURNAL).write_bytes(encode(1, "run", data))
        with pytest.raises(JournalError, match=r"journal\.jsonl does not start as a journal"):
            library_at_start(finished)
    (finished / JOURNAL).write_bytes(b"")
    with pytest.raises(JournalError, match=r"journal\.jsonl does not start as a journal"):
        library_at_start(finished)


@pytest.mark.parametrize("mode", ["train", "dev", "eval"])
@pytest.mark.parametrize(
    ("rests", "again"), [((), True), (("candidates",), None), (("revisions",), False), (("phases",), False)]
)
def test_an_absent_providers_error_is_asked_again_unless_something_rests_on_it(
    mode: Any, rests: tuple[str, ...], again: bool | None
) -> None:
    """What an epoch learned rests on its train rollouts alone until the dev split has decided."""
    rollout = make_rollout(0, None, mode=mode, cost_usd=0.5)
    log: Any = JournalContents()
    log.rollouts[rollout.rollout_id] = rollout
    log.away.add(rollout.rollout_id)
    for name in rests:
        getattr(log, name)[1] = SimpleNamespace(status="complete")
    log.reopen()
    asked = mode != "train" if again is None else again
    assert (rollout.rollout_id not in log.rollouts) is asked
    assert log.away == (set() if asked else {rollout.rollout_id})
    assert log.abandoned == ([rollout] if asked else [])


@pytest.mark.parametrize(
    ("fields", "unless", "paid"),
    [
        ({"cost_usd": 0.5}, False, True),
        ({"cost_usd": 0.5}, True, False),
        ({"cost_usd": 0.0, "frames": ()}, False, False),
    ],
)
def test_a_rollout_that_is_made_again_stays_on_the_bill(fields: Any, unless: bool, paid: bool) -> None:
    rollout, log = make_rollout(0, 1.0, **fields), JournalContents()
    rollouts: Any = log.rollouts
    rollouts[rollout.rollout_id] = rollout
    log.drop("unknown")
    assert [*rollouts] == [rollout.rollout_id]
    log.drop(rollout.rollout_id, unless=rollout if unless else make_rollout(1))
    assert [*rollouts] == []
    assert log.abandoned == ([rollout] if paid else [])


def test_the_log_of_a_run_says_where_it_is(finished: Path) -> None:
    log = read_log(finished)
    journal = finished / JOURNAL
    assert (log.path, log.lines, log.end) == (
        journal,
        len(journal.read_bytes().splitlines()),
        journal.stat().st_size,
    )
    assert log.settled_groups is None


@pytest.mark.parametrize("event", ["rollout", "abandoned", "group"])
def test_what_is_of_a_scenario_that_the_run_does_not_have_is_refused(finished: Path, event: str) -> None:
    journal = finished / JOURNAL
    rows = [json.loads(row) for row in journal.read_bytes().splitlines()]
    data = next(row["data"] for row in rows if row["event"] == ("group" if event == "group" else "rollout"))
    line = encode(len(rows) + 1, event, data | {"scenario_id": "foreign"})
    journal.write_bytes(journal.read_bytes() + line)
    message = f":{len(rows) + 1}: event '{event}' cannot be read: the run has no scenario 'foreign'"
    with pytest.raises(JournalError, match=message):
        read_log(finished)


def begun(folder: Path, *events: tuple[str, Any]) -> Path:
    """Leave the header of a journal alone, with other `events` after it."""
    journal = folder / JOURNAL
    first = journal.read_bytes().splitlines(keepends=True)[0]
    rows = (encode(n, name, data) for n, (name, data) in enumerate(events, start=2))
    journal.write_bytes(first + b"".join(rows))
    return folder


def attempt(scenario: str, index: int = 0, epoch: int = 1, credit: float | None = 1.0, **changes: Any) -> Any:
    group, mode = f"run1.e{epoch}.{scenario}", changes.pop("mode", "train")
    return make_rollout(
        index, credit, scenario_id=scenario, epoch=epoch, group_id=group, mode=mode, **changes
    )


def grouped(*rollouts: Any, **changes: Any) -> dict[str, Any]:
    found = make_group([1.0] * len(rollouts), rollouts=rollouts, **changes)
    wire: dict[str, Any] = to_wire(found)
    return wire | {"rollouts": [[r.rollout_id, r.status] for r in rollouts]}


def called(key: str, epoch: int) -> dict[str, Any]:
    return to_wire(call(key, epoch=epoch))  # type: ignore[return-value]


def test_what_a_killed_run_has_on_file_is_an_incomplete_run(finished: Path) -> None:
    two = [attempt("train-0"), attempt("train-0", 1)]
    spare, lost = attempt("train-1", cost_usd=0.5), attempt("train-2", cost_usd=0.25)
    dev = [attempt("train-3", epoch=2, mode="dev")]
    first_dev = attempt("train-1", epoch=2, mode="dev")
    early, late = called("b", 1), called("a", 1)
    events = [
        *[("rollout", to_wire(one)) for one in (*two, spare, lost, *dev, first_dev)],
        ("group", grouped(*two)),
        ("group", grouped(*dev, mode="dev")),
        ("group", grouped(first_dev, mode="dev")),
        ("abandoned", to_wire(lost)),
        ("call", early),
        ("call", {**late, "model": "openai:before"}),
        ("call", late),
        ("call", called("other", 2)),
    ]
    run = load_run(begun(finished, *events))
    assert (run.status, run.reason, run.finished_at, run.warnings) == ("incomplete", "killed", "", ())
    first, second = run.phases
    assert (first.status, first.library_hash, first.phase.epoch, second.phase.epoch) == (
        "incomplete",
        "",
        1,
        2,
    )
    assert [(g.scenario_id, len(g.rollouts)) for g in first.groups] == [("train-0", 2)]
    assert sorted(r.scenario_id for r in first.loose) == ["train-1", "train-2"]
    assert ([c.key for c in first.calls], [c.key for c in second.calls]) == (["a", "b"], ["other"])
    assert {c.model for c in first.calls} == {"openai:teacher"}
    assert ([*second.groups], [g.scenario_id for g in second.dev]) == ([], ["train-1", "train-3"])
    assert (first.dev, second.loose) == ((), ())
    log = read_log(finished)
    assert [r.rollout_id for r in log.ungrouped()] == [spare.rollout_id]
    assert log.begun == {"run1.e1.train-0", "run1.e1.train-1", "run1.e2.train-1", "run1.e2.train-3"}
    assert log.traced == {"run1.e1.train-0", "run1.e2.train-1", "run1.e2.train-3", "a", "b", "other"}
    assert (log.complete, finished_of(log, [first.phase])) == (False, {})
    assert run_of(log) == run


def test_worlds_that_are_up_candidates_and_settled_sweeps_are_remembered(finished: Path) -> None:
    library = Library(hash="b" * 64, experiences=(make_experience(),))
    candidate = Revision(epoch=1, library=library, applied=())
    worlds = [("a", True), ("b", True), ("a", False), ("unknown", False)]
    events = [("world", {"rollout_id": id_, "scenario_id": f"s-{id_}", "up": up}) for id_, up in worlds]
    events += [("candidate", to_wire(candidate)), ("settled", {"epoch": 3})]
    log = read_log(begun(finished, *events))
    assert log.worlds == {"b": "s-b"}
    assert log.candidates == {1: candidate}
    assert (log.settled, log.revisions) == ({3}, {})


def test_what_rests_on_a_rollout_goes_with_it(finished: Path) -> None:
    away = attempt("train-0", credit=None, failure=Failure(code="provider", message="503"))
    other = attempt("train-1", credit=None, failure=Failure(code="crash", message="503"))
    opinion = to_wire(KIND) | {"rollout_id": away.rollout_id}
    result = to_wire(FOUND) | {"rollout_id": away.rollout_id}
    events = [("rollout", to_wire(away)), ("rollout", to_wire(other)), ("group", grouped(away))]
    log = read_log(begun(finished, *events, ("judgement", result), ("opinion", opinion)))
    assert log.away == {away.rollout_id}
    assert (log.checker_results, log.opinions) == ({away.rollout_id: FOUND}, {away.rollout_id: KIND})
    assert [r.rollout_id for r in log.all_rollouts()] == [away.rollout_id, other.rollout_id]
    assert log.forget(away.rollout_id) == away
    assert log.forget(away.rollout_id) is None
    assert (log.away, log.groups, log.members) == (set(), {}, {})
    assert (log.checker_results, log.opinions, [*log.rollouts]) == ({}, {}, [other.rollout_id])


def test_a_training_phase_is_finished_with_its_revision_and_a_sweep_without() -> None:
    train = Phase(epoch=1, mode="train", temperature=0.7, rollouts=1, scenarios=("a",))
    sweep, open_ = (
        Phase(epoch=n, mode="eval", temperature=0.3, rollouts=1, scenarios=("a",)) for n in (2, 3)
    )
    log = JournalContents()
    for phase, status in ((train, "complete"), (sweep, "complete"), (open_, "incomplete")):
        log.phases[phase.epoch] = PhaseResult(phase=phase, groups=(), status=status, library_hash="")
    assert log.complete_phases == {1, 2}
    assert [log.is_finished(phase) for phase in (train, sweep, open_)] == [False, True, False]
    log.revisions[1] = Revision(epoch=1, library=Library(), applied=())
    assert log.is_finished(train)
    for status in ("complete", "aborted"):
        log.finish = {"status": status}
        assert log.complete is (status == "complete")


def test_a_test_that_is_skipped_leaves_the_checks_of_an_answer() -> None:
    rollout = make_rollout(0, 0.5)
    assert judged(rollout, checker_result=SKIP) == rollout


def test_a_journal_that_comes_back_to_a_settled_group_is_resumed_in_memory(finished: Path) -> None:
    whole = read_to_resume(finished)
    assert whole.settled_groups is not None
    settled = {id_ for id_ in whole.begun if id_.startswith(("run1.e1.", "run1.e2."))}
    assert set(whole.settled_groups.ids) == settled != set()
    assert {id_.rpartition(".r")[0] for id_ in whole.rollouts} == whole.begun - settled
    rollouts = {r.rollout_id for r in whole.all_rollouts()}
    assert {id_.rpartition(".r")[0] for id_ in rollouts} == whole.begun
    assert whole.traced >= whole.begun | {f"run1.e{epoch}" for epoch in whole.complete_phases}
    cost = SettledCost()
    cost.add(r for r in whole.all_rollouts() if r.rollout_id not in whole.rollouts)
    assert whole.settled_cost == cost != SettledCost()
    journal = finished / JOURNAL
    rows = [json.loads(row) for row in journal.read_bytes().splitlines()]
    again = next(row["data"] for row in rows if row["event"] == "rollout" and row["data"]["epoch"] == 1)
    journal.write_bytes(journal.read_bytes() + encode(len(rows) + 1, "rollout", again))
    log = read_to_resume(finished)
    assert log.settled_groups is None
    assert log.rollouts.keys() == rollouts


def test_a_library_cannot_be_read_from_a_journal_without_a_line(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_bytes(b"")
    with pytest.raises(JournalError, match="does not start as a journal"):
        library_at_start(tmp_path)


@pytest.mark.parametrize("change", [{"stamps": []}, {"run_id": 3}, {"schema": None}])
def test_a_header_of_the_wrong_shape_is_no_header(finished: Path, change: Any) -> None:
    journal = finished / JOURNAL
    first = json.loads(journal.read_bytes().splitlines()[0])["data"]
    journal.write_bytes(encode(1, "run", first | change))
    with pytest.raises(JournalError, match="does not start as a journal"):
        read_log(finished)

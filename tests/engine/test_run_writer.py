"""What a resumed run writes of what it has on file."""

import errno
import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from support.builders import make_group, make_scenario
from support.jobs import ScriptedActor, make_job, suite, three_or_not
from support.sweeps import make_run

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.files import JOURNAL, METRICS
from pytest_tfgrpo.core.records import EndpointUse, Frame, Group, PriceUse
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.engine.run_writer import RunWriter
from pytest_tfgrpo.runs.journal.journal import read
from pytest_tfgrpo.runs.journal.journal_contents import JournalContents, load_run, read_to_resume


def write(folder: Path, groups: Sequence[Group], resumed: JournalContents) -> list[list[str]]:
    """Write `groups` in a run that goes on with `resumed`; returns the rollouts of each group on file."""
    scenarios = [*suite(), make_scenario(), make_scenario(id="other")]
    job = make_job(ScriptedActor(three_or_not), folder, scenarios=scenarios, job_resumed=resumed)
    writer = RunWriter(folder, job)
    for group in groups:
        for rollout in group.rollouts:
            if rollout.rollout_id not in resumed.rollouts:
                writer.rollout(rollout)
        writer.group(group)
    writer.close()
    events = [event.data for event in read(folder / JOURNAL) if event.event == "group"]
    return [[rollout_id for rollout_id, _ in data["rollouts"]] for data in events]


def test_a_resumed_run_writes_a_group_of_a_sweep_again_only_with_more_rollouts_than_on_file(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "out" / "demo" / "runs" / "run1"
    folder.mkdir(parents=True)
    small, large = make_group([1.0, 0.0], mode="eval"), make_group([1.0, 0.0, 1.0], mode="eval")
    other = make_group([0.0, 1.0], mode="eval", scenario_id="other")
    few, many, others = ([r.rollout_id for r in group.rollouts] for group in (small, large, other))
    assert write(folder, [small], JournalContents()) == [few]
    assert write(folder, [small, other], read_to_resume(folder)) == [few, others]
    assert write(folder, [large, other], read_to_resume(folder)) == [few, others, many]
    assert write(folder, [large, other], read_to_resume(folder)) == [few, others, many]
    assert read_to_resume(folder).groups[large.group_id].scores == large.scores


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[RunWriter]:
    folder = tmp_path / "out" / "demo" / "runs" / "run1"
    folder.mkdir(parents=True)
    one = RunWriter(folder, make_job(ScriptedActor(three_or_not), folder))
    yield one
    one.close()


def test_a_rollout_that_json_cannot_hold_is_garbage_with_its_lost_checks(
    tmp_path: Path, writer: RunWriter
) -> None:
    (rollout,) = make_group([1.0]).rollouts
    assert rollout.checks
    frame = Frame(kind="tool", name="t", output={1, 2})  # type: ignore[arg-type]
    kept = [writer.rollout(replace(rollout, rollout_id="a", frames=(frame,)))]
    kept += [writer.abandoned(replace(rollout, rollout_id="b", status="cancelled", frames=(frame,)))]
    assert [(one.status, one.failure and one.failure.code, one.frames) for one in kept] == [
        ("failed", "garbage", ()),
        ("cancelled", "garbage", ()),
    ]
    assert {(check.credit, check.reason) for check in kept[0].checks} == {(0.0, "not reached: garbage")}
    writer.close()
    events = [event for event in read(next(tmp_path.rglob(JOURNAL))) if event.n > 1]
    assert [(event.event, event.data["rollout_id"]) for event in events] == [
        ("rollout", "a"),
        ("abandoned", "b"),
    ]


def test_a_folder_where_the_metrics_cannot_be_written_is_said_and_its_journal_is_free_again(
    tmp_path: Path,
) -> None:
    (tmp_path / METRICS).mkdir()
    job = make_job(ScriptedActor(three_or_not), tmp_path)
    with pytest.raises(JournalError, match=f"cannot write .*{METRICS}: .*Is a directory"):
        RunWriter(tmp_path, job)
    (tmp_path / METRICS).rmdir()
    RunWriter(tmp_path, job).close()


class FullDisk(io.StringIO):
    """Takes nothing."""

    name = METRICS

    def write(self, text: str, /) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def close(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_disk_that_takes_no_metrics_ends_the_run_with_its_journal_whole(
    tmp_path: Path, writer: RunWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = make_group([1.0, 0.0])
    with monkeypatch.context() as patch:
        patch.setattr(writer, "_metrics", FullDisk())
        for step in (lambda: writer.group(group), writer.close):
            with pytest.raises(JournalError, match=f"cannot write {METRICS}: .*No space left on device"):
                step()
    (event,) = [one for one in read(next(tmp_path.rglob(JOURNAL))) if one.event == "group"]
    assert event.data["group_id"] == group.group_id


@pytest.mark.parametrize("used", [True, False])
def test_the_end_of_a_run_has_its_endpoints_and_prices_where_there_are_some(
    used: bool, tmp_path: Path
) -> None:
    use = EndpointUse(endpoint="lab", concurrency=3, lowest=2, highest=4, found=True, calls=9, refused=1)
    price = PriceUse(model="openai:m", table="prices 2026-01")
    run = make_run(final={"a": [1]}, warnings=("one",), status="incomplete", reason="the budget is spent")
    run = replace(run, endpoints=(use,) if used else (), prices=(price,) if used else ())
    writer = RunWriter(tmp_path, make_job(ScriptedActor(three_or_not), tmp_path))
    writer.finish(run)
    *_, end = read(tmp_path / JOURNAL)
    assert end.event == "finish"
    more = {
        "endpoints": [to_wire(use)],
        "prices": [{"model": "openai:m", "table": "prices 2026-01"}],
    }
    assert end.data == {
        "status": "incomplete",
        "reason": "the budget is spent",
        "finished_at": run.finished_at,
        "warnings": ["one"],
        **(more if used else {}),
    }
    again = load_run(tmp_path)
    assert (again.endpoints, again.prices) == (run.endpoints, run.prices)
    assert (again.status, again.reason, again.warnings) == ("incomplete", "the budget is spent", ("one",))

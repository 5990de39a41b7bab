"""What a resumed run writes of what it has on file."""

from collections.abc import Sequence
from pathlib import Path

from support.builders import make_group, make_scenario
from support.jobs import ScriptedActor, make_job, suite, three_or_not

from pytest_tfgrpo.core.files import JOURNAL
from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.engine.writer import RunWriter
from pytest_tfgrpo.runs.journal.journal import read
from pytest_tfgrpo.runs.journal.journal_contents import JournalContents, read_to_resume


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

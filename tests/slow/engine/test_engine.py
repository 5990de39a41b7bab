import json
from pathlib import Path

import pytest
from support.jobs import LessonPerGroup, ScriptedActor, make_job, run_job, suite, three_or_not
from support.syncs import Syncs

from pytest_tfgrpo.core.files import JOURNAL
from pytest_tfgrpo.engine import run_writer
from pytest_tfgrpo.protocols import ActorCall, LearningContext, Proposal
from pytest_tfgrpo.runs.splits import with_dev


def test_what_is_paid_for_is_on_disk_before_anything_depends_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, syncs, seen = tmp_path / "run" / JOURNAL, Syncs(monkeypatch), []
    tried: list[ActorCall] = []

    def kept(event: str, epoch: int) -> int:
        lines = [json.loads(line) for line in syncs.on_disk(journal).splitlines()]
        return sum(line["event"] == event and line["data"].get("epoch") == epoch for line in lines)

    class Watching(LessonPerGroup):
        async def propose(self, context: LearningContext) -> Proposal:
            seen.append(context.epoch)
            assert kept("rollout", context.epoch) == train * 4
            assert kept("group", context.epoch) == train
            return await super().propose(context)

    def answer(call: ActorCall) -> str:
        if "<experiences" in call.prompt.system and not tried:  # the first of the dev split
            tried.append(call)
            assert kept("candidate", 1) == 1
        return three_or_not(call)

    monkeypatch.setattr(run_writer, "COMMIT_EVERY_S", 60.0)
    job = make_job(
        ScriptedActor(answer), tmp_path, scenarios=with_dev(suite(60, 3), 0.5), job_optimizer=Watching()
    )
    train = sum(s.split == "train" for s in job.scenarios)
    assert train < 60
    run, _ = run_job(job, tmp_path / "run")
    assert run.status == "complete"
    assert seen == [1, 2]
    assert tried
    assert any(phase.dev for phase in run.phases)
    assert syncs.on_disk(journal) == journal.read_bytes()

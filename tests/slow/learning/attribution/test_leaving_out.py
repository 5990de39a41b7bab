"""Lessons left out of training prompts: by chance, by identity, for a whole group, and in no sweep."""

from pathlib import Path
from typing import Any

from support.attribution.leaving_out import lessons
from support.jobs import ScriptedActor, make_job, run_job, suite, three_or_not

from pytest_tfgrpo.learning.library.library import of
from pytest_tfgrpo.runs.journal.journal_contents import load_run, read_log, read_to_resume


def test_a_resumed_run_leaves_out_the_same_lessons(tmp_path: Path) -> None:
    def job(**changes: Any) -> Any:
        library = of(lessons(3))
        return make_job(
            ScriptedActor(three_or_not),
            tmp_path,
            scenarios=suite(train=30),
            job_library=library,
            lesson_dropout=0.4,
            **changes,
        )

    def shown(folder: Path) -> dict[str, tuple[set[str], set[str]]]:
        run = load_run(folder)
        said = {
            e.id: e.summary32
            for result in run.phases
            if result.revision
            for e in result.revision.library.experiences
        }
        said |= {e.id: e.summary32 for e in run.library_start.experiences}
        return {
            g.group_id: (
                {said[i] for i in g.rollouts[0].experiences},
                {said[i] for i in g.rollouts[0].left_out},
            )
            for result in run.phases
            for g in result.groups
        }

    whole, cut = tmp_path / "whole" / "runs" / "run1", tmp_path / "cut" / "runs" / "run1"
    run_job(job(), whole)
    run_job(job(), cut)
    journal = cut / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[: len(lines) // 2]))
    log = read_log(cut)
    assert 0 < len(log.rollouts) < len(read_log(whole).rollouts)
    run_job(job(job_resumed=read_to_resume(cut)), cut)
    assert shown(cut) == shown(whole)

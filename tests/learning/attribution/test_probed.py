"""Which lessons training leaves out at random: those in doubt, where a run is long enough to find out."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.builders import PACK_STAMP, make_experience
from support.jobs import ScriptedActor, make_job, suite, three_or_not
from support.sweeps import make_result

from pytest_tfgrpo.core.lessons import Acceptance, LessonTrial, Revision
from pytest_tfgrpo.core.records import PhaseResult
from pytest_tfgrpo.learning.attribution.exposures import content_key
from pytest_tfgrpo.learning.attribution.leaving_out import probed
from pytest_tfgrpo.learning.library.library import empty, of

LESSON = make_experience(summary32="For letter words use count.", stamp_signature=PACK_STAMP)


def learned(helps: float | None = None) -> PhaseResult:
    """Return a first epoch that learned the lesson, of which the dev split knows that it `helps`."""
    trial = LessonTrial(
        id=LESSON.id,
        key=content_key(LESSON),
        fate="accepted",
        value=0.01,
        sd=0.01,
        helps=helps or 0.0,
        included=9,
        left_out=9,
    )
    trials = () if helps is None else (trial,)
    decided = Acceptance(rule="safe", margin=0.02, alpha=0.2, scenarios=20, lessons=trials)
    result = make_result({"a": [1, 0]})
    return replace(result, revision=Revision(epoch=1, library=of([LESSON]), acceptance=decided))


@pytest.mark.parametrize(
    ("train", "epochs", "helps", "left_out"),
    [
        (100, 3, None, False),  # one epoch to come leaves it out of 20 groups
        (100, 4, None, True),
        (100, 4, 0.6, True),
        (100, 4, 0.99, False),
        (100, 4, 0.02, False),
    ],
)
def test_a_lesson_of_the_run_is_left_out_where_that_can_show_what_is_not_known(
    tmp_path: Path, train: int, epochs: int, helps: float | None, left_out: bool
) -> None:
    actor, result = ScriptedActor(three_or_not), learned(helps)
    job = make_job(actor, tmp_path, scenarios=suite(train=train), epochs=epochs, lesson_dropout=0.2)
    phase = next(phase for phase in job.phases if phase.mode == "train" and phase.epoch == 2)
    assert probed(job, phase, of([LESSON]), [result]) == (frozenset({LESSON.id}) if left_out else frozenset())


def test_a_lesson_of_the_start_is_left_out_in_short_runs_too_as_runs_add_up(tmp_path: Path) -> None:
    job = make_job(ScriptedActor(three_or_not), tmp_path, job_library=of([LESSON]), lesson_dropout=0.2)
    phase = next(phase for phase in job.phases if phase.mode == "train")
    assert probed(job, phase, of([LESSON]), []) == {LESSON.id}
    assert probed(job, replace(phase, lesson_dropout=0.0), of([LESSON]), []) == frozenset()
    assert probed(job, job.phases[-1], of([LESSON]), []) == frozenset()
    assert probed(job, phase, empty(), []) == frozenset()

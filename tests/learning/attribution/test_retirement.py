"""Retirement: what was shown to harm goes and stays away; what does nothing gives way to something new."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.builders import PACK_STAMP, make_experience, make_exposures, make_pack
from support.jobs import ScriptedActor, make_job, run_job, suite

from pytest_tfgrpo.core.lessons import Experience, Operation, Revision
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.learning.attribution.effects import LessonEffect, lesson_effects
from pytest_tfgrpo.learning.attribution.exposures import content_key
from pytest_tfgrpo.learning.attribution.retirement import retire, without_harmful
from pytest_tfgrpo.learning.library.library import carry_out, of
from pytest_tfgrpo.protocols import ActorCall, LearningContext, Proposal

WORDS = ("alpha", "bravo", "carol", "delta", "echo", "foxtrot", "golf", "hotel", "india")


def lesson(n: int, **changes: Any) -> Experience:
    return make_experience(
        n, summary32=f"For letter words use {WORDS[n]} first.", stamp_signature=PACK_STAMP, **changes
    )


def standing(effect: float, half: float = 0.05, *, groups: int = 300, p: float = 0.5) -> LessonEffect:
    low, high = effect - half, effect + half
    claimed = p < 0.05
    return LessonEffect(
        included=groups * 4 // 5,
        left_out=groups // 5,
        scenarios=100,
        errors=0,
        effect=effect,
        ci95=(low, high),
        p=p,
        p_adjusted=p,
        verdict="harmful" if claimed and high < 0 else "helpful" if claimed and low > 0 else "unclear",
    )


HARMFUL, HELPFUL, IDLE = standing(-0.2, p=0.001), standing(0.2, p=0.001), standing(0.0)


def retired(
    known: dict[int, LessonEffect],
    *,
    operations: list[Operation] | None = None,
    slots: int = 3,
    held: int = 4,
    cap: int = 100,
) -> Revision:
    """Return what comes of a library of the first `held` lessons, of which `known` is known."""
    library = of(lesson(n) for n in range(held))
    done = carry_out(library, operations or [], cap=cap, epoch=1)
    return retire(
        library,
        done,
        {content_key(lesson(n)): value for n, value in known.items()},
        packs={"text": make_pack(experience_slots=slots)},
        retire_after=200,
        cap=cap,
    )


def add(n: int) -> Operation:
    return Operation(kind="add", experience=lesson(n))


def removed(revision: Revision) -> list[str]:
    return [t for op in revision.applied if op.kind == "remove" for t in op.targets]


def test_a_lesson_shown_to_harm_is_removed_with_the_figures_as_reason() -> None:
    revision = retired({0: HARMFUL, 1: HELPFUL, 2: IDLE})
    assert removed(revision) == [lesson(0).id]
    assert revision.applied[0].reason == (
        "harmful: effect -0.200 (95 % interval -0.250 to -0.150, adjusted p 0.001) "
        "in 240 groups with it and 60 without"
    )
    assert {e.id for e in revision.library.experiences} == {lesson(n).id for n in (1, 2, 3)}


@pytest.mark.parametrize(
    "known",
    [standing(-0.2, p=0.06), standing(-0.04, p=0.01), replace(HARMFUL, verdict="not_estimable", ci95=None)],
)
def test_what_is_not_shown_to_harm_stays(known: LessonEffect) -> None:
    assert removed(retired({0: known})) == []


def test_without_new_lessons_nothing_gives_way() -> None:
    assert removed(retired({0: IDLE, 1: IDLE})) == []


def test_one_idle_lesson_gives_way_to_each_new_one_the_weakest_first() -> None:
    known = {0: standing(0.02), 1: standing(-0.01), 2: standing(0.04), 3: HELPFUL}
    one = retired(known, operations=[add(5)])
    assert removed(one) == [lesson(1).id]
    assert one.applied[0].kind == "add"
    assert one.applied[-1].reason.startswith("made room for a new lesson: effect -0.010 ")
    assert removed(retired(known, operations=[add(5), add(6)])) == [lesson(1).id, lesson(0).id]
    many = retired(known, operations=[add(n) for n in (4, 5, 6, 7)])
    assert removed(many) == [lesson(n).id for n in (1, 0, 2)], "a helpful one never gives way"


def test_a_lesson_whose_interval_begins_at_nothing_gives_way() -> None:
    assert removed(retired({0: standing(0.05)}, operations=[add(5)])) == [lesson(0).id]


def test_nothing_gives_way_while_slots_are_free() -> None:
    known = dict.fromkeys(range(4), IDLE)
    assert removed(retired(known, operations=[add(5)], slots=5)) == []
    assert len(removed(retired(known, operations=[add(5), add(6)], slots=5))) == 1


def test_the_place_of_a_harmful_lesson_is_free_for_a_new_one() -> None:
    assert removed(retired({0: HARMFUL, 1: IDLE}, operations=[add(5)], slots=4)) == [lesson(0).id]


@pytest.mark.parametrize("known", [standing(0.0, groups=199), standing(0.06)])
def test_a_lesson_tried_too_little_or_good_so_far_does_not_give_way(known: LessonEffect) -> None:
    assert removed(retired({0: known}, operations=[add(5)])) == []


def test_from_as_many_groups_on_as_are_set_a_lesson_gives_way() -> None:
    known = {0: standing(0.0, groups=200)}
    assert removed(retired(known, operations=[add(5)])) == [lesson(0).id]


def test_a_lesson_that_the_optimizer_changes_is_left_to_it() -> None:
    update = Operation(kind="update", experience=lesson(5), targets=(lesson(0).id,))
    merge = Operation(kind="merge", experience=lesson(6), targets=(lesson(1).id, lesson(2).id))
    drop = Operation(kind="remove", targets=(lesson(3).id,), reason="out of date")
    known = dict.fromkeys(range(4), HARMFUL)
    revision = retired(known, operations=[update, merge, drop])
    assert revision.applied == (update, merge, drop)


def test_the_size_cap_holds_after_retirement() -> None:
    revision = retired({0: HARMFUL}, operations=[add(5)], cap=4)
    assert len(revision.library.experiences) == 4
    assert removed(revision) == [lesson(0).id], "its place is enough: none is trimmed"


def test_another_domain_is_untouched() -> None:
    dates = Operation(kind="add", experience=lesson(5, domain="dates"))
    assert removed(retired({0: IDLE}, operations=[dates])) == []


def test_what_was_shown_to_harm_is_not_learned_again() -> None:
    update = Operation(kind="update", experience=lesson(1), targets=("x",))
    kept, refused = without_harmful(
        [add(0), update, add(2), Operation(kind="remove", targets=("y",))],
        {content_key(lesson(0)): HARMFUL, content_key(lesson(1)): HARMFUL, content_key(lesson(2)): HELPFUL},
    )
    assert [op.kind for op in kept] == ["add", "remove"]
    assert [(r.operation, r.code) for r in refused] == [(add(0), "harmful"), (update, "harmful")]
    assert "effect -0.200" in refused[0].reason


class Stubborn:
    """Proposes the same bad lesson every epoch."""

    name = "stubborn"
    identity: dict[str, Any] = {}  # noqa: RUF012 - as the protocol has it

    async def propose(self, context: LearningContext) -> Proposal:
        new = lesson(0, id=f"bad-{context.epoch}", epoch=context.epoch)
        held = [e for e in context.library.experiences if e.summary32 == new.summary32]
        return Proposal(operations=() if held else (Operation(kind="add", experience=new),))


def spoiled(call: ActorCall) -> str:
    wrong = WORDS[0] in call.prompt.system or call.seed % 8 == 0
    return "4" if wrong else "3"


def stubborn_job(tmp_path: Path, **changes: Any) -> Any:
    return make_job(
        ScriptedActor(spoiled),
        tmp_path,
        scenarios=suite(train=120),
        job_optimizer=Stubborn(),
        acceptance="off",
        lesson_dropout=0.4,
        group_size=2,
        **changes,
    )


def test_in_a_run_a_lesson_that_harms_is_retired_and_never_comes_back(tmp_path: Path) -> None:
    run, _ = run_job(stubborn_job(tmp_path, epochs=5), tmp_path / "runs" / "run1")
    revisions = [result.revision for result in run.phases if result.revision is not None]
    assert [[op.kind for op in r.applied] for r in revisions] == [["add"], ["remove"], [], []]
    assert revisions[1].applied[0].reason.startswith("harmful: effect -0.")
    assert [[r.code for r in revision.refused] for revision in revisions[2:]] == [["harmful"], ["harmful"]]
    assert run.library.experiences == ()


def test_what_earlier_runs_showed_counts_for_the_lessons_a_run_starts_with(tmp_path: Path) -> None:
    start = of([lesson(0), lesson(1)])
    rows = make_exposures({content_key(lesson(0)): -0.5, content_key(lesson(1)): 0.0}, run_id="run0")
    known = stubborn_job(
        tmp_path, epochs=2, job_library=start, job_preflight={"exposures": to_wire(rows)}, sample_size=8
    )
    run, _ = run_job(known)
    (revision,) = [result.revision for result in run.phases if result.revision is not None]
    assert removed(revision) == [lesson(0).id]
    run, _ = run_job(stubborn_job(tmp_path, epochs=2, job_library=start, sample_size=8))
    (revision,) = [result.revision for result in run.phases if result.revision is not None]
    assert removed(revision) == [], "eight groups alone show nothing"


@pytest.mark.parametrize(("groups", "leaves"), [(400, True), (160, False)])
def test_in_a_run_the_weakest_lesson_tried_in_vain_gives_way_to_a_new_one(
    tmp_path: Path, groups: int, leaves: bool
) -> None:
    """The prompt has 8 slots, all taken, by 7 lessons that help and one that does nothing."""
    start = of(lesson(n) for n in range(1, 9))
    rows = make_exposures(
        {content_key(lesson(n)): 0.0 if n == 5 else 0.07 for n in range(1, 9)},
        base=0.3,
        groups=groups,
        run_id="run0",
    )
    job = stubborn_job(
        tmp_path, epochs=2, job_library=start, job_preflight={"exposures": to_wire(rows)}, sample_size=4
    )
    run, _ = run_job(job)
    (revision,) = [result.revision for result in run.phases if result.revision is not None]
    gone = [op for op in revision.applied if op.kind == "remove"]
    assert [op.kind for op in revision.applied] == ["add"] + ["remove"] * leaves
    assert len(run.library.experiences) == 9 - leaves
    if leaves:
        assert gone[0].reason.startswith("made room for a new lesson: effect ")
        known = {e.id: content_key(e) for e in start.experiences}
        found = lesson_effects([*rows], known.values())
        (target,) = gone[0].targets
        assert found[known[target]].effect == min(s.effect for s in found.values() if s.effect is not None)

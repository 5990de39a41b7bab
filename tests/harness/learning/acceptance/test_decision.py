"""The decision on a candidate: what is tried, in which order, and what comes into force."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import make_experience

from pytest_tfgrpo.core.lessons import Library, Operation, Revision, Trial
from pytest_tfgrpo.harness.learning.acceptance.decision import Limits, decide
from pytest_tfgrpo.harness.learning.acceptance.per_lesson import Case
from pytest_tfgrpo.harness.learning.acceptance.rule import AcceptanceRule, Pairs
from pytest_tfgrpo.harness.learning.library.library import SIZE_CAP, carry_out, empty, of
from pytest_tfgrpo.harness.metrics.comparison import Tally

SCENARIOS = 40
Effect = Callable[[frozenset[str]], float]
"""The mean of every dev scenario, by the ids of the lessons in force."""


def tally(mean: float, errors: int = 0) -> Tally:
    n = 4 - errors
    return Tally(stamp="", n=n, sum=mean * n, sum_sq=mean * mean * n, errors=errors)


class Suite:
    """Dev scenarios whose scores follow from the lessons in force; each library is asked once."""

    def __init__(
        self, effect: Effect, *, changed: int = SCENARIOS, errors: int = 0, own: Effect | None = None
    ) -> None:
        """`own` is the difference that a lesson makes in its own scenarios, by the id of that lesson."""
        self.made = 0
        self._own = own
        self.asked: list[frozenset[str]] = []
        self._effect = effect
        self._changed = changed
        self._errors = errors

    def changed(self, before: Library, after: Library) -> tuple[str, ...]:
        same = before.hash == after.hash
        return () if same else tuple(f"d{n}" for n in range(self._changed))

    def cost(self, before: Library, after: Library) -> int:
        return sum(4 * self._changed for one in (before, after) if ids(one) not in self.asked)

    async def compare(self, before: Library, after: Library) -> Pairs:
        for library in (before, after):
            if ids(library) not in self.asked:
                self.asked.append(ids(library))
                self.made += 4 * self._changed
        changed = self.changed(before, after)
        return Pairs(
            unchanged=SCENARIOS - len(changed),
            before={id: self._row(before, n) for n, id in enumerate(changed)},
            after={id: self._row(after, n) for n, id in enumerate(changed)},
            cases=tuple(self._cases(after)),
        )

    def _cases(self, library: Library) -> Iterator[Case]:
        for id in sorted(ids(library)) if self._own is not None else ():
            difference = self._own(frozenset({id}))
            yield Case(before=(), after=(id,), differences=(difference,) * 5, room=True)

    def _row(self, library: Library, n: int) -> Tally:
        noise = 0.02 * (n % 5 - 2)
        return tally(min(1.0, max(0.0, self._effect(ids(library)) + noise)), self._errors)


def ids(library: Library) -> frozenset[str]:
    return frozenset(e.id for e in library.experiences)


def lesson(n: int, **changes: Any) -> Operation:
    return Operation(kind="add", experience=make_experience(n, **changes))


def name(n: int) -> str:
    return f"{n:016x}"


def harm(bad: Collection[int], each: float = 0.15) -> Effect:
    return lambda present: 0.5 - each * len(present & {name(n) for n in bad})


def candidate(operations: Sequence[Operation], library: Library | None = None, cap: int = 200) -> Revision:
    return carry_out(library or empty(), operations, cap=cap, epoch=1)


def settle(
    revision: Revision,
    suite: Suite,
    *,
    rule: str = "safe",
    library: Library | None = None,
    rollouts: int = 100_000,
) -> Revision:
    limits = Limits(
        rule=AcceptanceRule(name=rule, margin=0.02),  # type: ignore[arg-type]
        scenarios=SCENARIOS,
        rollouts=rollouts,
        cap=200,
    )
    return asyncio.run(decide(library or empty(), revision, suite, limits))


def trials(revision: Revision) -> tuple[Trial, ...]:
    assert revision.acceptance is not None
    return revision.acceptance.trials


def in_force(revision: Revision) -> set[int]:
    return {int(e.id, 16) for e in revision.library.experiences}


def test_a_candidate_that_does_no_harm_comes_into_force_after_one_trial() -> None:
    made = candidate([lesson(n) for n in range(8)])
    decided = settle(made, Suite(harm([])))
    assert decided.library == made.library
    assert decided.applied == made.applied
    assert [trial.verdict for trial in trials(decided)] == ["accepted"]
    assert decided.acceptance is not None
    assert decided.acceptance.rejected == ()


def test_strict_keeps_nothing_that_is_not_shown_to_be_better() -> None:
    decided = settle(candidate([lesson(n) for n in range(8)]), Suite(harm([])), rule="strict")
    assert decided.library.hash == empty().hash
    assert {trial.verdict for trial in trials(decided)} <= {"rejected", "not_tested"}


def test_strict_keeps_what_is_better() -> None:
    better = settle(candidate([lesson(n) for n in range(3)]), Suite(harm([1], -0.2)), rule="strict")
    assert in_force(better) == {0, 1, 2}


def test_one_bad_lesson_does_not_sink_the_good_ones() -> None:
    decided = settle(candidate([lesson(n) for n in range(8)]), Suite(harm([5])))
    assert in_force(decided) == {0, 1, 2, 3, 6, 7}
    assert [(len(trial.operations), trial.verdict) for trial in trials(decided)] == [
        (8, "rejected"), (4, "accepted"), (2, "rejected"), (2, "accepted"),
        (1, "not_tested"), (1, "not_tested"),
    ]  # fmt: skip
    assert decided.acceptance is not None
    assert {o.experience.id for o in decided.acceptance.rejected if o.experience} == {name(4), name(5)}


def test_a_single_operation_is_tried_once() -> None:
    decided = settle(candidate([lesson(1)]), Suite(harm([1])))
    assert in_force(decided) == set()
    assert len(trials(decided)) == 1


@pytest.mark.parametrize("rule", ["safe", "strict"])
def test_of_fifty_operations_no_more_than_four_libraries_are_tried(rule: str) -> None:
    suite = Suite(harm(range(50), 0.01))
    decided = settle(candidate([lesson(n) for n in range(50)]), suite, rule=rule)
    assert sum(trial.verdict != "not_tested" for trial in trials(decided)) == 4
    assert [trial.n for trial in trials(decided)] == list(range(1, len(trials(decided)) + 1))
    assert len(suite.asked) <= 5


def test_once_the_whole_was_rejected_the_doubt_no_longer_speaks_for_its_parts() -> None:
    """Each half loses 0.03: too little to be shown at the corrected level, and more than the margin."""

    def effect(present: frozenset[str]) -> float:
        return 0.5 - 0.03 * len(present)

    decided = settle(candidate([lesson(0), lesson(1)]), Suite(effect))
    assert in_force(decided) == set()


def test_small_losses_of_several_parts_do_not_add_up_beyond_the_margin() -> None:
    def effect(present: frozenset[str]) -> float:
        return 0.5 - 0.015 * len(present & {name(0), name(4)}) - 0.3 * (name(7) in present)

    decided = settle(candidate([lesson(n) for n in range(8)]), Suite(effect))
    assert in_force(decided) == {0, 1, 2, 3}
    assert "with the accepted parts -0.030" in trials(decided)[2].reason


@settings(max_examples=40)
@given(
    st.integers(min_value=1, max_value=12),
    st.sets(st.integers(min_value=0, max_value=11)),
    st.sampled_from(["safe", "strict"]),
)
def test_parts_never_amount_to_the_library_that_was_rejected(n: int, bad: set[int], rule: str) -> None:
    made = candidate([lesson(i) for i in range(n)])
    decided = settle(made, Suite(harm(bad, 0.05)), rule=rule)
    first = trials(decided)[0]
    assert (decided.library.hash == made.library.hash) == (first.verdict == "accepted")
    kept = {o.experience.id for o in decided.applied if o.experience}
    assert decided.acceptance is not None
    rejected = {o.experience.id for o in decided.acceptance.rejected if o.experience}
    assert kept | rejected == {name(i) for i in range(n)}
    assert not kept & rejected
    assert ids(decided.library) == kept


def worth(effects: dict[int, float]) -> Effect:
    return lambda present: 0.5 + sum(effects.get(int(id, 16), 0.0) for id in present)


def test_the_parts_are_corrected_for_one_another_and_the_whole_is_not() -> None:
    effect = worth({0: 0.03, 1: 0.03, 2: 0.03, 3: 0.03, 5: -0.3})
    decided = settle(candidate([lesson(n) for n in range(8)]), Suite(effect), rule="strict")
    whole, first, *_ = trials(decided)
    assert whole.p_adjusted == whole.p
    assert first.p is not None
    assert 0 < first.p < 0.01
    assert (first.verdict, first.p_adjusted) == ("accepted", 3 * first.p)


def test_a_part_that_is_better_only_before_the_correction_is_not_shown_to_be() -> None:
    class Doubtful(Suite):
        """The lesson 0 gains in 24 of 40 scenarios what it loses in the others; 3 ruins all."""

        def _row(self, library: Library, n: int) -> Tally:
            present = ids(library)
            change = (0.2 if n % 5 < 3 else -0.2) * (name(0) in present) - 0.4 * (name(3) in present)
            return tally(min(1.0, max(0.0, 0.5 + change)))

    decided = settle(candidate([lesson(n) for n in range(4)]), Doubtful(harm([])), rule="strict")
    _, first, *_ = trials(decided)
    assert first.p is not None
    assert first.p < 0.2 < 3 * first.p
    assert (first.verdict, first.p_adjusted) == ("rejected", 3 * first.p)
    assert in_force(decided) == set()


def test_a_part_that_is_shown_to_be_better_passes_its_share_of_the_level_on() -> None:
    effect = worth({0: 0.05, 1: 0.05, 2: 0.05, 3: -0.4})
    decided = settle(candidate([lesson(n) for n in range(4)]), Suite(effect), rule="strict")
    _, first, second, _ = trials(decided)
    assert [trial.verdict for trial in trials(decided)] == ["rejected", "accepted", "accepted", "not_tested"]
    assert first.p is not None
    assert second.p is not None
    assert first.p_adjusted == 3 * first.p
    assert second.p_adjusted == 2 * second.p
    assert 0 < second.p < 0.01


def test_a_part_beyond_the_budget_of_rollouts_stays_out_untested() -> None:
    decided = settle(candidate([lesson(n) for n in range(8)]), Suite(harm([5])), rollouts=2 * 4 * SCENARIOS)
    assert in_force(decided) == set()
    assert [trial.verdict for trial in trials(decided)] == ["rejected", "not_tested", "not_tested"]
    assert trials(decided)[1].reason == "it needs 160 rollouts after 320, but acceptance_rollouts is 320"


def test_the_first_trial_is_made_whatever_the_budget_for_parts() -> None:
    decided = settle(candidate([lesson(1)]), Suite(harm([])), rollouts=1)
    assert in_force(decided) == {1}


def test_nothing_proposed_is_nothing_to_try() -> None:
    suite = Suite(harm([]))
    decided = settle(Revision(epoch=1, library=empty()), suite)
    assert decided.acceptance is not None
    assert (decided.acceptance.note, suite.asked) == ("nothing was proposed", [])


@pytest.mark.parametrize(("rule", "kept"), [("safe", {1}), ("strict", set())])
def test_what_no_dev_scenario_sees_costs_nothing(rule: str, kept: set[int]) -> None:
    suite = Suite(harm([]), changed=0)
    decided = settle(candidate([lesson(1)]), suite, rule=rule)
    assert in_force(decided) == kept
    assert suite.made == 0
    assert trials(decided)[0].reason.startswith("no dev scenario's prompt changes")


@pytest.mark.parametrize("rule", ["safe", "strict"])
def test_a_trial_of_errors_alone_accepts_nothing_and_is_not_repeated_in_parts(rule: str) -> None:
    decided = settle(candidate([lesson(n) for n in range(8)]), Suite(harm([]), errors=4), rule=rule)
    assert in_force(decided) == set()
    assert [trial.reason for trial in trials(decided)] == [
        "not measured: too many rollouts are errors, 160 before and 160 after"
    ]


def test_operations_that_build_on_one_another_stay_together() -> None:
    update = Operation(kind="update", experience=make_experience(9, parents=(name(7),)), targets=(name(7),))
    made = candidate([*(lesson(n) for n in range(8)), update])
    decided = settle(made, Suite(harm([0])))
    assert in_force(decided) >= {9} or not in_force(decided) & {7, 9}
    for trial in trials(decided):
        new = {o.experience.id for o in trial.operations if o.experience}
        assert (name(7) in new) == (name(9) in new)


def test_a_lesson_enters_only_with_the_removal_of_the_one_that_says_the_same() -> None:
    old = make_experience(90, summary32="Count the words with the tool, never guess the number.")
    library = of([old])
    swap = [
        Operation(kind="remove", targets=(old.id,)),
        lesson(91, summary32="Never guess the number, count the words with the tool."),
    ]
    made = candidate([*(lesson(n) for n in range(3)), *swap], library)
    for trial in trials(settle(made, Suite(harm([0])), library=library)):
        kinds = {o.kind for o in trial.operations if o.targets or o.experience == swap[1].experience}
        assert kinds in (set(), {"remove", "add"})


def test_what_a_size_cap_removed_follows_from_what_is_kept() -> None:
    old = [make_experience(n, reward=replace(make_experience().reward, gt_score=0.1)) for n in (90, 91)]
    library = of(old)
    made = candidate([lesson(0), lesson(1)], library, cap=2)
    assert {o.targets for o in made.applied if o.reason.startswith(SIZE_CAP)} == {(name(90),), (name(91),)}
    limits = Limits(
        rule=AcceptanceRule(name="safe", margin=0.02), scenarios=SCENARIOS, rollouts=10_000, cap=2
    )
    decided = asyncio.run(decide(library, made, Suite(harm([1], 0.3)), limits))
    assert len(decided.library.experiences) == 2
    assert 0 in in_force(decided)
    assert decided.acceptance is not None
    assert [o.kind for o in decided.acceptance.rejected] == ["add"]


def helps(good: Collection[int]) -> Effect:
    return lambda present: 1.0 if present <= {name(n) for n in good} else 0.0


def gain(good: Collection[int]) -> Effect:
    return lambda present: 0.3 + 0.1 * len(present & {name(n) for n in good})


def test_what_did_its_own_scenarios_no_good_stays_out_of_a_library_that_is_better() -> None:
    decided = settle(
        candidate([lesson(n) for n in range(6)]), Suite(gain({0, 1, 2, 4}), own=helps({0, 1, 2, 4}))
    )
    assert in_force(decided) == {0, 1, 2, 4}
    assert [(len(trial.operations), trial.verdict) for trial in trials(decided)] == [
        (6, "accepted"), (4, "accepted"),
    ]  # fmt: skip
    assert "without 2 that did not help their own scenarios" in trials(decided)[1].reason
    assert decided.acceptance is not None
    assert {o.experience.id for o in decided.acceptance.rejected if o.experience} == {name(3), name(5)}


def test_where_nothing_would_be_left_the_rule_has_the_last_word() -> None:
    decided = settle(candidate([lesson(0), lesson(1)]), Suite(harm([]), own=helps(())))
    assert in_force(decided) == {0, 1}
    assert [trial.verdict for trial in trials(decided)] == ["accepted"]


def test_a_rejected_library_is_tried_first_without_what_its_scenarios_speak_against() -> None:
    good = {0, 1, 2, 3, 4, 6, 7}
    decided = settle(candidate([lesson(n) for n in range(8)]), Suite(harm([5]), own=helps(good)))
    assert in_force(decided) == good
    assert [(len(trial.operations), trial.verdict) for trial in trials(decided)] == [
        (8, "rejected"), (7, "accepted"),
    ]  # fmt: skip


def test_what_is_left_is_not_tried_beyond_the_rollouts_of_the_epoch() -> None:
    made = candidate([lesson(n) for n in range(6)])
    decided = settle(made, Suite(gain({0}), own=helps({0, 1})), rollouts=1)
    assert decided.library == made.library
    assert len(trials(decided)) == 1

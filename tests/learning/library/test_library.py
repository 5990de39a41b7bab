import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import PACK_STAMP, make_experience, make_pack
from support.reached import reached, reaches

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.lessons import (
    Experience,
    LearnedEffects,
    Library,
    Operation,
    Revision,
    Reward,
    Support,
)
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.learning.library.library import (
    apply,
    as_of,
    diff,
    empty,
    load_library,
    of,
    rebase,
    save_library,
)
from pytest_tfgrpo.learning.library.refusals import redacted
from pytest_tfgrpo.learning.library.screen import Screen

TOPICS = ["amber", "birch", "cedar", "delta", "ebony", "fjord", "grape", "hazel", "indigo", "juniper"]
EFFECTS = tuple(
    LearnedEffects(run_id=run, series="s", measure="m", on_topic=(0.1, 1.0, 5.0), elsewhere=(0.0, 0.5, 1.0))
    for run in ("run1", "run2")
)
"""What two runs have learned of lessons."""
SCREEN = Screen(
    [], answers=lambda scenario: (), packs={"text": make_pack(), "dates": make_pack("dates")}, max_words=32
)


def lesson(n: int, **changes: Any) -> Experience:
    """Return a lesson that resembles no other."""
    topic = f"{TOPICS[n % 10]} {TOPICS[n // 10 % 10]} {TOPICS[n // 100 % 10]}"
    return make_experience(n, **{"summary32": f"For {topic}: use tool_{n}."} | changes)


def id_of(n: int) -> str:
    return f"{n:016x}"


def add(experience: Experience) -> Operation:
    return Operation(kind="add", experience=experience, reason="new")


def update(experience: Experience, *targets: str) -> Operation:
    kind = "update" if len(targets) == 1 else "merge"
    return Operation(kind=kind, experience=experience, targets=targets, reason="more evidence")


def remove(id_: str) -> Operation:
    return Operation(kind="remove", targets=(id_,), reason="contradicted")


def revise(library: Library, *operations: Operation, cap: int = 200, epoch: int = 1) -> Revision:
    return apply(library, operations, screen=SCREEN, cap=cap, epoch=epoch)


def ids(library: Library) -> set[str]:
    return {e.id for e in library.experiences}


def test_operations_add_supersede_and_remove_and_nothing_is_renumbered() -> None:
    start = of([lesson(1), lesson(2), lesson(3), lesson(4)])
    revision = revise(
        start,
        add(lesson(5)),
        update(lesson(6), id_of(1)),
        update(lesson(7), id_of(2), id_of(3)),
        remove(id_of(4)),
    )
    assert ids(revision.library) == {id_of(5), id_of(6), id_of(7)}
    assert revision.refused == ()
    assert [o.kind for o in revision.applied] == ["add", "update", "merge", "remove"]
    parents = {e.id: e.parents for e in revision.library.experiences}
    assert parents == {id_of(5): (), id_of(6): (id_of(1),), id_of(7): (id_of(2), id_of(3))}
    assert revision.library.lineage == (start.hash,)
    later = revise(revision.library, remove(id_of(5))).library
    assert later.lineage == (start.hash, revision.library.hash)


@pytest.mark.parametrize(
    ("kind", "count", "problem"),
    [
        ("update", 2, "update takes one target, not 2"),
        ("remove", 2, "remove takes one target, not 2"),
        ("add", 1, "add takes no target, not 1"),
        ("merge", 1, "merge takes two or more targets, not 1"),
        ("merge", 3, None),
    ],
)
def test_each_kind_of_operation_takes_so_many_targets(kind: Any, count: int, problem: str | None) -> None:
    new = None if kind == "remove" else lesson(9)
    operation = Operation(kind=kind, experience=new, targets=tuple(map(id_of, range(count))))
    refused = revise(of([lesson(0), lesson(1), lesson(2)]), operation).refused
    assert [refusal.reason for refusal in refused] == ([] if problem is None else [problem])


def test_what_is_not_touched_stays_the_same_record() -> None:
    start = of([lesson(1), lesson(2)])
    after = revise(start, add(lesson(3))).library
    assert {e for e in after.experiences if e.id != id_of(3)} == set(start.experiences)


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (remove("nobody"), "unknown_id"),
        (update(lesson(9), "nobody"), "unknown_id"),
        (update(lesson(9), id_of(1), "nobody"), "unknown_id"),
        (update(lesson(9), id_of(1), id_of(1)), "malformed"),
        (Operation(kind="add"), "malformed"),
        (Operation(kind="remove"), "malformed"),
        (Operation(kind="remove", targets=(id_of(1),), experience=lesson(9)), "malformed"),
        (Operation(kind="add", experience=lesson(9), targets=(id_of(1),)), "malformed"),
        (Operation(kind="merge", experience=lesson(9), targets=(id_of(1),)), "malformed"),
        (Operation(kind="rename", experience=lesson(9)), "malformed"),  # type: ignore[arg-type]
        (update(lesson(9, domain="dates"), id_of(1)), "malformed"),
        (add(lesson(1, summary32="Something else.")), "duplicate"),
        (add(lesson(9, summary32=lesson(1).summary32)), "duplicate"),
        (add(lesson(9, summary32="word " * 33)), "word_cap"),
        (add(lesson(9, summary32="password: open-sesame")), "secret"),
    ],
)
def test_an_operation_that_may_not_be_applied_is_refused_with_a_code(operation: Operation, code: str) -> None:
    start = of([lesson(1), lesson(2)])
    revision = revise(start, operation)
    assert [(r.operation, r.code) for r in revision.refused] == [(redacted(operation), code)]
    assert revision.refused[0].reason
    assert revision.applied == ()
    assert revision.library == start


def test_every_target_of_a_merge_is_of_the_domain_of_the_new_lesson_and_the_first_unknown_is_named() -> None:
    start = of([lesson(1), lesson(2, domain="dates")])
    revision = revise(start, update(lesson(9), id_of(1), id_of(2)), update(lesson(9), "nobody", "no one"))
    assert [(r.code, r.reason) for r in revision.refused] == [
        ("malformed", f"{id_of(2)!r} belongs to domain 'dates'"),
        ("unknown_id", "'nobody' is not the id of an active lesson"),
    ]


def test_a_lesson_keeps_the_parents_that_it_came_with_behind_those_that_it_supersedes() -> None:
    new = lesson(9, parents=("earlier", id_of(1)))
    (found,) = revise(of([lesson(1)]), update(new, id_of(1))).library.experiences
    assert found.parents == (id_of(1), "earlier")


def test_an_id_once_used_is_not_used_again() -> None:
    revision = revise(of([lesson(1)]), remove(id_of(1)), add(lesson(1, summary32="Something else.")))
    assert [r.code for r in revision.refused] == ["duplicate"]


def test_an_id_of_a_lesson_that_came_and_went_is_not_used_again() -> None:
    revision = revise(of([]), add(lesson(1)), remove(id_of(1)), add(lesson(1, summary32="Something else.")))
    assert [r.code for r in revision.refused] == ["duplicate"]


def test_a_secret_in_the_reason_of_an_operation_is_taken_out() -> None:
    operation = Operation(kind="add", experience=lesson(1), reason="the user said password=hunter2hunter2")
    (applied,) = revise(of([]), operation).applied
    assert applied.reason == "the user said password=[redacted:named]"


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [
        ("For words: use count_items.", "for  WORDS use count_items", True),
        (
            "For tasks about distinct, unique, words, note: use split_words, then count_items.",
            "For tasks about unique, distinct, note, word: use split_words, then count_items.",
            True,
        ),
        (
            "For words: use split_words, then count_items.",
            "For words: use count_items, then split_words.",
            False,
        ),
        ("Round to 2 decimals.", "Round to 3 decimals.", False),
        ("For distinct words: use count_items.", "For sorted rows: use count_items.", False),
        ("日本語", "中国語", False),
        ("Amber birch cedar delta.", "Amber birch cedar delta ebony.", True),
        ("Amber birch cedar.", "Amber birch cedar delta.", False),
        ("Do it as is.", "Be so.", False),
    ],
)
def test_a_near_duplicate_says_the_same_with_the_same_names_and_numbers(
    first: str, second: str, alike: bool
) -> None:
    revision = revise(of([lesson(1, summary32=first)]), add(lesson(2, summary32=second)))
    assert bool(revision.refused) is alike


def test_the_same_words_with_another_polarity_domain_or_stamp_are_no_duplicate() -> None:
    start = of([lesson(1, stamp_signature="b" * 64)])
    texts = {"summary32": lesson(1).summary32}
    revision = revise(
        start,
        add(lesson(2, **texts)),
        add(lesson(3, polarity="avoid", **texts)),
        add(lesson(4, domain="dates", **texts)),
    )
    assert revision.refused == ()


def test_the_order_in_which_a_lesson_names_its_tools_counts_however_they_are_spelled() -> None:
    stat = make_experience().tool_stats[0]
    tools = (replace(stat, tool="Split"), replace(stat, tool="Trim"))
    one = lesson(1, summary32="For rows: use Split, then Trim.", tool_stats=tools)
    other = lesson(2, summary32="For rows: use Trim, then Split.", tool_stats=tools)
    assert revise(of([one]), add(other)).refused == ()


def test_an_update_may_say_the_same_as_what_it_supersedes() -> None:
    revision = revise(of([lesson(1)]), update(lesson(2, summary32=lesson(1).summary32), id_of(1)))
    assert ids(revision.library) == {id_of(2)}
    assert revision.library.hash == of([lesson(1)]).hash
    assert revision.library.lineage == (), "the visible content is the same"


def test_the_size_cap_removes_the_weakest_of_a_domain_with_a_reason() -> None:
    weak = lesson(1, reward=Reward(gt_score=0.2, relative_rank=0.9))
    others = [lesson(n, reward=Reward(gt_score=0.9, relative_rank=0.5)) for n in range(2, 5)]
    elsewhere = lesson(5, domain="dates", reward=Reward(gt_score=0.1, relative_rank=0.1))
    revision = revise(of([weak, *others, elsewhere]), add(lesson(6)), cap=4)
    assert ids(revision.library) == {e.id for e in [*others, elsewhere]} | {id_of(6)}
    (removal,) = [o for o in revision.applied if o.kind == "remove"]
    assert removal.targets == (weak.id,)
    assert removal.reason == "size cap: domain 'text' holds 4 lessons, and its evidence was the weakest"


def evidence(
    n: int, groups: int, rank: float, rollouts: int, day: int, text: str = "Use a ruler."
) -> Experience:
    return make_experience(
        n,
        reward=Reward(gt_score=0.5, relative_rank=rank),
        support=Support(groups=groups, rollouts=rollouts),
        created_at=f"2026-01-0{day}T00:00:00Z",
        summary32=text,
    )


@pytest.mark.parametrize(
    ("weak", "strong"),
    [
        (evidence(1, 1, 0.9, 9, 9), evidence(2, 2, 0.1, 1, 1)),
        (evidence(1, 1, 0.1, 9, 9), evidence(2, 1, 0.9, 1, 1)),
        (evidence(1, 1, 0.5, 1, 9), evidence(2, 1, 0.5, 2, 1)),
        (evidence(1, 1, 0.5, 1, 1, "Zip it."), evidence(2, 1, 0.5, 1, 2, "Add it.")),
        (evidence(2, 1, 0.5, 1, 1, "Add it."), evidence(1, 1, 0.5, 1, 1, "Zip it.")),
    ],
    ids=["groups", "rank", "rollouts", "age", "text"],
)
def test_of_equal_rewards_the_size_cap_takes_the_least_supported_then_the_oldest(
    weak: Experience, strong: Experience
) -> None:
    assert ids(revise(of([weak, strong]), cap=1).library) == {strong.id}


def test_the_hash_sees_what_prompts_see() -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"summary32": "Other."},
        {"domain": "dates"},
        {"polarity": "avoid"},
        {"stamp_signature": "b" * 64},
        {"prompt_pack_id": "other"},
        {"reward": Reward(gt_score=0.5, relative_rank=0.8)},
    ]
    hashes = {of([lesson(1, **change)]).hash for change in changes}
    assert len(hashes) == 7
    hidden = {
        "id": "x",
        "run_id": "r",
        "created_at": "",
        "group_id": "g",
        "parents": ("p",),
        "manifest_path": "m",
    }
    assert of([lesson(1, **hidden)]).hash == of([lesson(1)]).hash
    assert of([lesson(1), lesson(1, id="twin")]).hash != of([lesson(1)]).hash


def test_lessons_stand_by_domain_what_to_do_before_what_to_avoid_and_then_by_text() -> None:
    ordered = [
        lesson(4, domain="dates"),
        lesson(3, summary32="B."),
        lesson(2, summary32="C."),
        lesson(1, summary32="A.", polarity="avoid"),
        lesson(0, summary32="D.", polarity="avoid"),
    ]
    assert of(reversed(ordered)).experiences == tuple(ordered)


@given(st.lists(st.integers(0, 999), unique=True, max_size=8), st.randoms(use_true_random=False))
def test_the_hash_does_not_depend_on_order(numbers: list[int], chance: Any) -> None:
    lessons = [lesson(n) for n in numbers]
    library = of(lessons)
    chance.shuffle(lessons)
    assert of(lessons) == library


def operations_over(*known: int) -> st.SearchStrategy[list[Operation]]:
    """Draw operations on a few lessons, so that many name one that there is."""
    old = st.sampled_from([*known * 3, *range(4)])
    any_one = old | st.integers(31, 36)
    return st.lists(
        st.one_of(
            st.builds(lambda n: add(lesson(n)), st.integers(0, 30)),
            st.builds(lambda n, t: update(lesson(n), id_of(t)), st.integers(31, 36), old),
            st.builds(lambda n, a, b: update(lesson(n), id_of(a), id_of(b)), st.integers(61, 90), old, old),
            st.builds(lambda t: remove(id_of(t)), any_one),
        ),
        max_size=12,
    )


operations = operations_over(100, 101, 102)


def epochs(start: Library, batches: list[list[Operation]], cap: int = 200) -> list[Revision]:
    revisions: list[Revision] = []
    library = start
    for epoch, batch in enumerate(batches, start=1):
        revisions.append(revise(library, *batch, cap=cap, epoch=epoch))
        library = revisions[-1].library
    return revisions


@reaches("an update", "a merge", "a removal", "refused", "over the cap")
@given(operations, st.integers(1, 6))
def test_applying_is_deterministic_and_accounts_for_every_operation(batch: list[Operation], cap: int) -> None:
    start = of([lesson(n) for n in range(100, 104)])
    revision = revise(start, *batch, cap=cap)
    assert revision == revise(start, *batch, cap=cap)
    proposed = [o for o in revision.applied if "size cap" not in o.reason]
    assert len(proposed) + len(revision.refused) == len(batch)
    kinds = {(o.kind, len(o.targets)) for o in proposed}
    reached("an update", ("update", 1) in kinds)
    reached("a merge", any(targets == 2 for _, targets in kinds))
    reached("a removal", ("remove", 1) in kinds)
    reached("refused", revision.refused)
    reached("over the cap", len(proposed) < len(revision.applied))
    left = ids(start)
    for operation in revision.applied:
        left -= set(operation.targets)
        left |= {operation.experience.id} if operation.experience else set()
    assert ids(revision.library) == left
    assert len(left) <= cap


@given(st.lists(operations, max_size=4), st.data())
def test_the_library_of_any_epoch_can_be_shown(batches: list[list[Operation]], data: st.DataObject) -> None:
    start = of([lesson(n) for n in range(100, 103)])
    revisions = epochs(start, batches)
    epoch = data.draw(st.integers(0, len(batches)))
    then = as_of(start, revisions, epoch)
    assert then == (revisions[epoch - 1].library if epoch else start)
    assert then == as_of(start, reversed(revisions), epoch), "in whatever order they are given"


@reaches("added", "removed", "changed", "equal")
@given(operations, operations, st.booleans())
def test_a_diff_accounts_for_every_lesson_and_is_empty_for_equal_content(
    first: list[Operation], second: list[Operation], later: bool
) -> None:
    a = revise(of([lesson(n) for n in range(100, 103)]), *first).library
    b = revise(a if later else empty(), *second).library
    change = diff(a, b)
    for name in ("added", "removed", "changed"):
        reached(name, getattr(change, name))
    reached("equal", a.hash == b.hash)
    old = {e.id for e in change.removed} | {e.id for olds, _ in change.changed for e in olds}
    new = {e.id for e in change.added} | {e.id for _, e in change.changed}
    assert old <= ids(a)
    assert new <= ids(b)
    assert len(a.experiences) - len(old) == len(b.experiences) - len(new), "the rest is common"
    assert (diff(a, b) == diff(b, a)) is (a.hash == b.hash) or not (old or new)


def test_a_diff_shows_a_revision_with_what_it_superseded_also_over_several_epochs() -> None:
    start = of([lesson(1), lesson(2), lesson(3)])
    first = revise(start, update(lesson(4), id_of(1), id_of(2)), add(lesson(5)))
    second = revise(first.library, update(lesson(6), id_of(4)), remove(id_of(3)))
    history = [o.experience for r in (first, second) for o in r.applied if o.experience]
    change = diff(start, second.library, history)
    assert change.changed == (((lesson(1), lesson(2)), replace(lesson(6), parents=(id_of(4),))),)
    assert change.added == (lesson(5),)
    assert change.removed == (lesson(3),)


def test_lessons_of_equal_content_are_equal_in_a_diff_whatever_their_ids() -> None:
    change = diff(of([lesson(1)]), of([lesson(1, id="other", run_id="run2")]))
    assert (change.added, change.removed, change.changed) == ((), (), ())


def test_a_rebase_stamps_lessons_with_the_packs_as_they_are_now_and_names_the_parents() -> None:
    start = of([lesson(1), lesson(2, domain="dates"), lesson(3, domain="other")])
    packs = {"text": make_pack(), "dates": make_pack("dates", id="new-dates", stamp="b" * 64)}
    revision = rebase(start, packs, run_id="rebase", created_at="2026-02-01T00:00:00Z")
    (operation,) = revision.applied
    new = operation.experience
    assert new is not None
    assert (operation.kind, operation.targets, new.parents) == ("update", (id_of(2),), (id_of(2),))
    assert operation.reason == "the prompt pack changed"
    assert (new.stamp_signature, new.prompt_pack_id, new.summary32) == (
        "b" * 64,
        "new-dates",
        lesson(2).summary32,
    )
    assert new.created_at == "2026-02-01T00:00:00Z"
    assert new.id != id_of(2)
    assert ids(revision.library) == {id_of(1), id_of(3), new.id}
    assert revision.library.lineage == (start.hash,)
    everywhere = rebase(start, {"*": make_pack("*", stamp="c" * 64)}, run_id="r", created_at="")
    assert {e.stamp_signature for e in everywhere.library.experiences} == {"c" * 64}
    assert PACK_STAMP not in {e.stamp_signature for e in everywhere.library.experiences}


@given(st.lists(st.integers(0, 999), unique=True, max_size=5))
def test_a_library_survives_its_file(tmp_path_factory: pytest.TempPathFactory, numbers: list[int]) -> None:
    path = tmp_path_factory.mktemp("library") / "lib" / "new" / "library.json"
    library = of([lesson(n) for n in numbers], lineage=("b" * 64, "a" * 64))
    looks = {"eval": ("c" * 64, "d" * 64), "dev": ("e" * 64,)}
    library = replace(library, looks=looks, effects=EFFECTS)
    save_library(path, library)
    assert load_library(path) == library
    assert list(path.parent.iterdir()) == [path]


def test_the_file_is_fit_for_review_in_git(tmp_path: Path) -> None:
    path = tmp_path / "library.json"
    save_library(path, of([lesson(1), lesson(2)]))
    before = path.read_text().splitlines()
    save_library(path, of([lesson(2), lesson(3), lesson(1)]))
    after = path.read_text().splitlines()
    data = json.loads(path.read_text())
    assert violations("library", data) == []
    assert list(data) == ["experiences", "hash", "lineage", "schema"], "nothing that there is none of"
    assert list(data["experiences"][0]) == sorted(data["experiences"][0])
    assert set(before) - set(after) <= {line for line in before if '"hash"' in line}


def with_score(score: float) -> Any:
    return to_wire(lesson(1)) | {"reward": {"gt_score": score, "relative_rank": 0}}


SPOILED: dict[str, tuple[Any, str]] = {
    "not JSON": ("{", "not JSON"),
    "too deep": ("[" * 100_000, "not JSON"),
    "a list": ([[1]], r": /: .*not of type object; it holds \[\[1\]\]"),
    "another format": ({"schema": "tfgrpo.library/9"}, "/schema"),
    "no hash": ({"hash": None}, "/hash"),
    "another hash": ({"hash": "b" * 64}, "set it to"),
    "unknown key": ({"colour": "red"}, "colour"),
    "a text as lesson": ({"experiences": ["text"]}, "/experiences/0"),
    "a score over 1": ({"experiences": [with_score(7)]}, "/experiences/0/reward/gt_score"),
    "a score that is no number": ({"experiences": [with_score(float("nan"))]}, "gt_score"),
    "one id twice": ({"experiences": [to_wire(lesson(1)), to_wire(lesson(1))]}, "/experiences/1/id"),
    "one id twice, with another between": (
        {"experiences": [to_wire(lesson(n)) for n in (1, 2, 1)]}, "/experiences/2/id"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spoiled", "message"), SPOILED.values(), ids=SPOILED)
def test_a_file_that_is_no_library_is_an_error_with_file_and_place(
    tmp_path: Path, spoiled: Any, message: str
) -> None:
    path = tmp_path / "library.json"
    save_library(path, of([lesson(1)]))
    if isinstance(spoiled, dict):
        spoiled = json.loads(path.read_text()) | spoiled
    path.write_text(spoiled if isinstance(spoiled, str) else json.dumps(spoiled))
    with pytest.raises(StoreError, match=message) as caught:
        load_library(path)
    assert str(path) in str(caught.value)


def test_a_missing_or_unwritable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"absent\.json"):
        load_library(tmp_path / "absent.json")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"library\.json"):
        save_library(tmp_path / "file" / "library.json", empty())
    (tmp_path / "library.json").mkdir()
    with pytest.raises(StoreError, match=r"library\.json"):
        save_library(tmp_path / "library.json", empty())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "library.json"], "no temporary file is left"


def test_a_revision_a_rebase_and_a_way_back_keep_the_looks_at_a_split_and_what_was_learned() -> None:
    looked = replace(of([lesson(1)]), looks={"eval": ("a", "b")}, effects=EFFECTS)
    found = revise(looked, add(lesson(2))).library
    assert (found.hash != looked.hash, found.looks, found.effects) == (True, looked.looks, EFFECTS)
    assert revise(found, remove(id_of(1))).library.looks == looked.looks

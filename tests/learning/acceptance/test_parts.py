"""Units: operations that stand or fall together."""

from support.builders import make_experience

from pytest_tfgrpo.core.lessons import Operation
from pytest_tfgrpo.learning.acceptance.parts import units_of
from pytest_tfgrpo.learning.library.library import of


def test_a_merge_is_in_one_unit_with_both_lessons_that_it_replaces() -> None:
    first, second, both = (make_experience(n, summary32=f"Use tool {w}.") for n, w in enumerate("def"))
    operations = [Operation(kind="add", experience=one) for one in (first, second)]
    merge = Operation(kind="merge", experience=both, targets=(first.id, second.id))
    assert units_of(of(()), [*operations, merge]) == [(*operations, merge)]


def test_units_of_one_domain_stand_side_by_side_with_what_takes_a_lesson_away() -> None:
    old, late = (make_experience(n, domain=domain) for n, domain in enumerate(("text", "words")))
    new, dates = (
        make_experience(n, summary32=f"Use tool {n}.", domain=d) for n, d in ((2, "text"), (3, "dates"))
    )
    drop, drop_late = (Operation(kind="remove", targets=(one.id,)) for one in (old, late))
    add, add_dates = (Operation(kind="add", experience=one) for one in (new, dates))
    found = units_of(of((old, late)), [drop_late, drop, add_dates, add])
    assert found == [(add_dates,), (drop,), (add,), (drop_late,)]

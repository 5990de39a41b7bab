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

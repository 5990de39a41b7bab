"""The lessons of a domain as a teacher sees them."""

from types import SimpleNamespace
from typing import Any

from support.builders import PACK_STAMP, make_experience
from support.teachers import context_of

from pytest_tfgrpo.learning.optimizer.llm.numbered_lessons import MAX_REFUSED, NumberedLessons


def refused(n: int, domain: str = "text", stamp: str = PACK_STAMP) -> Any:
    lesson = make_experience(n, domain=domain, summary32=f"Use {domain} tool {n}.", stamp_signature=stamp)
    return lesson, SimpleNamespace(value=-0.1, helps=0.25, included=3, left_out=5)


def test_the_worst_of_the_refused_lessons_of_the_domain_are_told() -> None:
    others = [refused(98, "dates"), refused(99, stamp="b" * 64)]
    known = (*others, *(refused(n) for n in range(MAX_REFUSED + 1)))
    none, head, *lines = NumberedLessons("text", context_of([], [], refused=known)).text().splitlines()
    assert none == "(none yet)"
    assert head.startswith("tried and refused")
    assert len(lines) == MAX_REFUSED == 20
    assert lines[0] == (
        "- | do | change of the mean score -0.100, probability to help 0.25, "
        '3 attempts with it and 5 without | "Use text tool 0."'
    )
    assert [f"Use text tool {n}." in lines[n] for n in range(MAX_REFUSED)] == [True] * MAX_REFUSED

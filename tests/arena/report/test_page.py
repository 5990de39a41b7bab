"""The page over an arena."""

import random
import re

from support.arena.results import arena_result, simulated

from pytest_tfgrpo.arena.report.comparison import compare_sides
from pytest_tfgrpo.arena.report.page import arena_page
from pytest_tfgrpo.arena.result import Side

FAILED = Side(name="<b>llm", note="optimizer failed: <script>alert(1)</script>")


def page() -> str:
    sides = simulated({"none": 0, "gepa": 0.3, "few-shot": 0.1}, random.Random(6))
    return arena_page(compare_sides(arena_result([*sides, FAILED])))


def test_the_result_is_its_first_sentence_and_the_same_arena_gives_the_same_page() -> None:
    made = page()
    assert re.search(r'<section class="verdict pass"[^>]*><p class="figure">gepa gained \+0\.', made)
    assert made == page()


def test_each_gain_is_drawn_on_one_scale_with_zero() -> None:
    drawn = re.findall(r'<circle class="sweep" cx="([\d.]+)"', page())
    zeros = set(re.findall(r'<line class="reference" x1="([\d.]+)"', page()))
    assert len(drawn) == 2
    assert len(zeros) == 1
    assert float(drawn[0]) > float(drawn[1]) > float(zeros.pop())


def test_what_others_wrote_is_shown_as_text() -> None:
    made = page()
    assert "<script>alert" not in made
    assert "&lt;script&gt;alert(1)" in made
    assert "<b>llm" not in made


def test_an_arena_without_a_score_has_a_page_too() -> None:
    made = arena_page(compare_sides(arena_result([FAILED])))
    assert "nothing to compare: no side has a score" in made
    assert "<svg" not in made

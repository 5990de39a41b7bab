"""The check on mathematics: what is equivalent, what the library gets wrong, and hostile answers."""

import pytest
from support.growth import growth
from support.math_pairs import DIFFERENT, EQUAL

from pytest_tfgrpo.core.errors import CheckError, ScenarioError
from pytest_tfgrpo.scoring.checks import math
from pytest_tfgrpo.scoring.checks.math_worker import marked
from pytest_tfgrpo.scoring.checks.registry import KINDS


def test_a_numeral_that_cannot_be_read_for_certain_is_undecided(judge, monkeypatch):
    monkeypatch.setattr(math, "_compare", lambda params, answer: {"found": True, "equal": True})
    for negated in ({}, {"not": True}):
        reason = judge("math", "it is 5 million", value=5, **negated).reason
        assert reason.startswith("expected 5; the last number, '5' cannot be read for certain: 'million'")


def test_numerals_are_compared_as_they_are_read(judge, monkeypatch):
    monkeypatch.setattr(
        math, "_compare", lambda params, answer: {"found": True, "equal": answer == "it is -1234.50"}
    )
    assert judge("math", "it is -€1.234,50", value=-1234.5).passed


def test_of_a_long_answer_the_end_is_read(judge, monkeypatch):
    seen = []
    monkeypatch.setattr(
        math, "_compare", lambda params, answer: seen.append(answer) or {"found": True, "equal": True}
    )
    judge("math", "first " + "x " * 10_000 + "last", value=5)
    assert seen[0].endswith("x last")
    assert len(seen[0]) <= math.ANSWER_MAX_CHARACTERS


def test_there_are_many_pairs():
    pairs = EQUAL + DIFFERENT
    assert len(EQUAL) >= 80
    assert len(DIFFERENT) >= 60
    assert len(set(pairs)) == len(pairs)


@pytest.mark.parametrize("params", [{}, {"value": ""}, {"value": " "}, {"value": True}, {"value": "1" * 2001},
                                    {"value": 1, "decimals": 0}, {"value": 1, "rel_tol": 1}])  # fmt: skip
def test_bad_parameters_are_refused_when_loaded(load, params):
    with pytest.raises(ScenarioError):
        load("math", **params)


def test_without_the_library_loading_says_what_to_install(load, monkeypatch):
    monkeypatch.setattr(math, "find_spec", lambda name: None)
    math._is_installed.cache_clear()
    try:
        with pytest.raises(ScenarioError, match=r"#/checks/0: .*pip install 'pytest-tfgrpo\[math\]'"):
            load("math", value=3)
    finally:
        math._is_installed.cache_clear()


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (1234, {"1234", "1,234"}),
        (r"$\frac{13}{40}$", {r"$\frac{13}{40}$", r"\frac{13}{40}", "13/40"}),
        (r"2\sqrt{3}", {r"2\sqrt{3}", "2sqrt3"}),
        (r"\boxed{[0, 1)}", {r"\boxed{[0, 1)}", "[0, 1)"}),
    ],
)
def test_expected_values_are_known_to_the_leakage_screen_with_and_without_latex(load, value, texts):
    assert set(KINDS["math"].answers(load("math", value=value))) == texts


def test_whose_fault_the_end_of_a_reader_is_depends_on_what_it_read(judge, monkeypatch):
    def ends_over(error):
        def compare(params, given):
            raise error

        monkeypatch.setattr(math, "_compare", compare)

    ends_over(math._Died())
    assert judge("math", "3", value=3).reason == "expected 3; reading '3' was too much for the reader"
    ends_over(math._DiedOfValue())
    with pytest.raises(CheckError, match="cannot use the value 3: it is too much for the reader"):
        judge("math", "3", value=3)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("so it is $x$", "so it is $x$"),
        ("it costs 5 euros", "it costs 5 euros"),
        ("first\n\n x + 1.\n\n", "$x + 1$"),
        ("The answer is: 2^10", "$2^{10}$"),
        ("**3 1/2**", r"$3\frac{1}{2}$"),
        ("", ""),
        ("2√3", r"$2\sqrt{3}$"),
        ("x² + √(x+1)", r"$x^{2} + \sqrt{x+1}$"),
        ("3½", r"$3\frac{1}{2}$"),
        ("a₁₀⁻¹", "$a_{10}^{-1}$"),
        ("４２", "$42$"),
        ("٤٢", "$42$"),
        ("答案是x+1。", "$x+1$"),
        ("共有42個。", " 共有 42 個 。"),
    ],
)
def test_mathematics_without_marks_gets_them(text, read):
    assert marked(text) == read


@pytest.mark.parametrize(
    "piece",
    [
        "$",
        "\\boxed{",
        "answer ",
        "answer is",
        "1e",
        "1 2/",
        "^(",
        "0.",
        "(",
        " or",
        "√(",
        "x²",
        "3⁄",
        "答案",
        "√",
    ],
)
def test_the_time_for_a_long_answer_grows_with_its_length(piece):
    assert growth(lambda n: marked(piece * n), 2_000 // len(piece)) < 64

"""Answers in lessons: no spelling hides one, and honest lessons contain none."""

import base64
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.builders import make_scenario
from support.growth import growth
from support.reached import reached, reaches

from pytest_tfgrpo.core.scenarios import Check, Scenario
from pytest_tfgrpo.suite.contamination.lesson_answers import LessonAnswers, key_of, labels
from pytest_tfgrpo.suite.contamination.readings import without_leet
from pytest_tfgrpo.suite.contamination.spelling import fold, values


def answers(scenario: Scenario) -> tuple[str, ...]:
    return tuple(check.params["value"] for check in scenario.checks)


def one(answer: str, n: int = 0) -> Scenario:
    return make_scenario(
        f"s{n}", prompt=f"Task {n}.", checks=(Check(kind="exact", params={"value": answer}),)
    )


def found(lesson: str, *known: str, tools: tuple[str, ...] = ()) -> list[str]:
    scenarios = [one(answer, n) for n, answer in enumerate(known)]
    index = LessonAnswers(scenarios, answers, tools, allowed=labels(scenarios, answers))
    return [each.scenario for each in index.find(lesson)]


NUMBERS = """48213|48 213|48213.0|48,213|48.213,00|48'213|48_213|48 213.00|+48213|-48213|$48,213|48213%
48.213k|4.8213e4|4.8213 x 10^4|4 8 2 1 3|4-8-2-1-3|4.8.2.1.3|٤٨٢١٣|４８２１３|४८२१३|𝟒𝟖𝟐𝟏𝟑|④⑧②①③|٤٨٬٢١٣
48\u202f213|48\u00a0213|0xbc55|0xBC55|BC55|0b1011110001010101|0o136125|31284|3 1284|\\u0034\\u0038213
&#52;8213|4821&#51;|%348213|NDgyMTM=|3438323133""".replace("\n", "|").split("|")


@pytest.mark.parametrize("spelled", NUMBERS)
def test_a_number_is_found_by_its_value(spelled: str) -> None:
    assert found(f"For the third letter answer {spelled} at once.", "48213") == ["s0"]
    assert found(f"{spelled}", "48,213.0") == ["s0"]


@pytest.mark.parametrize(
    ("answer", "spelled"),
    [
        ("12.5", "12,50"),
        ("12.5", "1.25e1"),
        ("0.125", "12.5 %"),
        ("-4.25", "4.250"),
        ("1234567", "1 234 567"),
        ("1.234,56 EUR", "1234.56"),
        ("0.00048", "4.8e-4"),
        ("48213 kg", "48 213"),
    ],
)
def test_decimals_powers_shares_and_units_are_read(answer: str, spelled: str) -> None:
    assert found(f"Say {spelled}.", answer) == ["s0"]


@pytest.mark.parametrize(
    "lesson",
    [
        "Expect 148213 rows.",
        "Expect 48213.5 here.",
        "Expect 9,48213 here.",
        "Expect 482130 rows, or 4821.",
        "Use 48 workers and 213 rows.",
        "Build 1.48213.2 of 2024-11-22, 10.0.48.213 and 12:48.",
    ],
)
def test_another_number_is_not_that_one(lesson: str) -> None:
    assert found(lesson, "48213") == []


WORDS = """Tel Aviv|tel aviv|TelAviv|tel-aviv|tel_aviv|t e l a v i v|T.e.l.A.v.i.v|Tel/Aviv|тel аviv|ΤΕL ΑVΙV
Tél Ávïv|ｔｅｌ　ａｖｉｖ|𝓣𝓮𝓵 𝓐𝓿𝓲𝓿|ⓣⓔⓛ ⓐⓥⓘⓥ|🅃🄴🄻 🄰🅅🄸🅅|🆃🅴🅻 🅰🆅🅸🆅|ᴛᴇʟ ᴀᴠɪᴠ|T3l Av1v|7el 4viv|viva let
vivA leT|VIVALET|54656c2041766976|VGVsIEF2aXY=|Tel%20Aviv|Tel\\u0020Aviv|&#84;el Aviv|Tel\u200bAviv
Te\u00adl Aviv""".replace("\n", "|").split("|")


@pytest.mark.parametrize("spelled", WORDS)
def test_words_are_found_by_their_letters(spelled: str) -> None:
    assert found(f"For the third letter answer {spelled} at once.", "Tel Aviv") == ["s0"]


@pytest.mark.parametrize(
    ("answer", "lesson"),
    [
        ("banana", "Ask for bananas."),
        ("words", "Use split_words, then sort_list."),
        ("sort", "Use split_words, then sort_list."),
        ("Tel Aviv", "Use hotel aviva."),
        ("late", "Calculate later, at the gate."),
        ("relay", "Play the tape, lay it down."),
        ("yes", "Say yes always."),
        ("a, b", "Say a b always."),
    ],
)
def test_a_part_of_a_word_is_no_answer(answer: str, lesson: str) -> None:
    assert found(lesson, answer) == []


def test_a_code_or_several_words_are_found_within_longer_words_too() -> None:
    assert found("Answer xZX44829917x.", "ZX-4482-9917") == ["s0"]
    assert found("Answer thenewyorkcityhall.", "New York City") == ["s0"]


def test_han_needs_no_blanks() -> None:
    assert found("答えは東京都庁です。", "東京都庁") == ["s0"]


def test_what_has_hardly_a_letter_is_looked_for_as_it_is_written() -> None:
    assert found("Answer x >= 3 then.", "x >= 3") == ["s0"]
    assert found("Compare x with 3.", "x >= 3") == []
    assert found("Meet at 12:30.", "12:30") == ["s0"]
    assert found("Take 1230 rows.", "12:30") == []
    assert found("On 20260401.", "2026-04-01") == ["s0"]


@pytest.mark.parametrize(
    ("lesson", "leaks"),
    [
        ("Answers in order: 7, 12, 31.", True),
        ("letter a 7, letter b 12, letter c 31", True),
        ("First cat, then dog, then owl.", True),
        ("7", False),
        ("Answer 7 or 12.", False),
        ("Round to 7 digits, keep 12 rows, and stop after 31 calls of the tool.", False),
        ("Avoid guess; it failed in 7 of 12 attempts.", False),
        ("Do this: 1. split the words 2. sort them 3. count them", False),
        ("On the way take 7 and 12 and 31 and then the cat with the big dog back home again today", True),
    ],
)
def test_short_answers_are_found_where_a_lesson_lists_several(lesson: str, leaks: bool) -> None:
    known = ("7", "12", "31", "cat", "dog", "owl", "1", "2", "3")
    assert bool(found(lesson, *known)) == leaks


def test_the_same_short_answer_of_three_tasks_is_a_label_and_no_list() -> None:
    known = [answer for answer in ("A", "B", "C", "D") for _ in range(3)]
    assert found("Answer A, B, C or D.", *known) == []


def test_an_answer_of_three_tasks_or_more_is_a_label() -> None:
    assert found("Send refunds to billing.", "billing", "billing") == ["s0"]
    assert found("Send refunds to billing.", "billing", "Billing", "billing.") == []
    assert found("Say 48 213.", "48213", "48,213", "48213.0") == []


def test_equal_tasks_count_once() -> None:
    scenarios = [make_scenario(f"s{n}", checks=one("billing").checks) for n in range(5)]
    assert labels(scenarios, answers) == frozenset()


def test_names_of_tools_may_be_named() -> None:
    assert found("Use split_words.", "split words") == ["s0"]
    assert found("Use split_words.", "split words", tools=("split_words",)) == []


CYRILLIC = str.maketrans("aceopxy", "асеорху")
TRANSFORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "capitals": str.upper,
    "joined": lambda text: text.replace(" ", ""),
    "spaced": lambda text: " ".join(text.replace(" ", "")),
    "dotted": lambda text: ".".join(text.replace(" ", "")),
    "dashed": lambda text: text.replace(" ", "-"),
    "wide": lambda text: "".join(chr(ord(c) + 0xFEE0) if c != " " else c for c in text),
    "bold": lambda text: "".join(_bold(c) for c in text),
    "marked": lambda text: "".join(c + "\u0301" if c != " " else c for c in text),
    "cyrillic": lambda text: text.translate(CYRILLIC),
    "backwards": lambda text: text[::-1],
    "hexadecimal": lambda text: text.encode().hex(),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "entities": lambda text: "".join(f"&#{ord(c)};" for c in text),
    "json": lambda text: "".join(f"\\u{ord(c):04x}" for c in text),
    "joiners": lambda text: "\u200d".join(text),
}


def _bold(character: str) -> str:
    name = {True: "CAPITAL", False: "SMALL"}[character.isupper()]
    if character.isdigit():
        return chr(0x1D7CE + int(character))
    return unicodedata.lookup(f"MATHEMATICAL BOLD {name} {character}") if character.isalpha() else character


letters = st.text("abcdefghijklmnopqrstuvwxyz", min_size=3, max_size=9)
phrases = st.lists(letters, min_size=2, max_size=4).map(" ".join)
codes = st.builds("{}{}".format, letters, st.integers(1000, 99999))
numbers = st.integers(10_000, 10**12).map(str)
around = st.sampled_from(
    ["For the third letter answer {} at once.", "{}", "Say: {}!", "It is ({}), mostly", "[{}]"]
)


@given(st.one_of(phrases, codes, numbers), st.sampled_from([*TRANSFORMS]), around)
def test_any_spelling_of_a_distinctive_answer_is_caught(answer: str, how: str, lesson: str) -> None:
    assert found(lesson.format(TRANSFORMS[how](answer)), answer)


grouped = {
    "commas": "{:,}",
    "underscores": "{:_}",
    "decimal": "{}.0",
    "exponent": "{:.12e}",
    "hexadecimal": "{:#x}",
    "binary": "{:#b}",
    "octal": "{:#o}",
    "cents": "{:.2f}",
}


@given(
    st.integers(10_000, 10**9), st.sampled_from([*grouped]), st.sampled_from([",", " ", ".", "'", "\u202f"])
)
def test_any_spelling_of_a_whole_number_is_caught(number: int, how: str, sign: str) -> None:
    spelled = grouped[how].format(number)
    assert found(f"Answer {spelled.replace(',', sign)}.", str(number))


@given(st.integers(10_000, 10**9), st.integers(10_000, 10**9))
def test_another_number_than_the_answer_is_no_leak(number: int, other: int) -> None:
    assume(str(number) not in (str(other), str(other)[::-1]) and not str(other).endswith("000"))
    assert found(f"Answer {other:,} or {other}.0 here.", str(number)) == []


pieces = st.sampled_from(
    ["48213", "48 213", "4.8e4", "0x1f", "12 %", "3k", "Tel", "aviv", " ", ".", "-", "ä"]
)


@reaches("long enough", "too short", "a number")
@given(st.text(max_size=60) | st.lists(pieces, max_size=8).map("".join))
def test_any_text_can_be_searched_and_every_answer_finds_itself(text: str) -> None:
    found(text, "48213", "Tel Aviv")
    reached("a number", list(values(fold(text))))
    reached("too short", len(key_of(text)) < 5)
    if len(key_of(text)) >= 5 and any(c.isalnum() for c in text):
        reached("long enough")
        assert found(text, text)


def test_the_search_costs_what_the_text_has_words_not_what_the_suite_has_answers() -> None:
    lesson = "For counting words: call count_words, never guess 12."
    known = {n: [one(f"the answer {i} of {n}", i) for i in range(n)] for n in (100, 1600)}
    indexes = {n: LessonAnswers(scenarios, answers) for n, scenarios in known.items()}
    assert growth(lambda n: [indexes[n].find(lesson) for _ in range(100)], 100) < 4


def coded(text: str) -> str:
    return base64.b32encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("answer", "lesson"),
    [
        ("Kestrel Harbour 1947", "Say K3str3l H4rb0ur 1947."),
        ("Kestrel Harbour 1947", "Say K3str3lH4rb0ur 1947."),
        ("Kestrel Harbour 1947", "Say 1947, Kestrel Harbour."),
        ("Kestrel Harbour 1947", "In 1947 it is the harbour that is called Kestrel."),
        ("Kestrel Harbour 1947", "The H4rb0ur, 1947, named after a k3str3l."),
        ("Kestrel Harbour", "The harbour: think of a kestrel."),
        ("Kestrel Harbour 1947", f"Say {coded('Kestrel Harbour 1947')}"),
        ("Kestrel Harbour 1947", f"Say {coded('Kestrel Harbour 1947').lower().rstrip('=')}"),
        ("Kestrel Harbour", "Say Xrfgery Uneobhe."),
        ("48213", "Say forty-eight thousand two hundred and thirteen."),
        ("48213", "Say four eight two one three."),
        ("48213", "Sag vier acht zwei eins drei."),
        ("1947", "The year is nineteen forty-seven."),
        ("1200000", "It is one million two hundred thousand."),
        ("1900", "hundred-" * 2_200 + "nineteen-hundred"),
    ],
)
def test_order_words_between_codes_and_numbers_in_words_hide_no_answer(answer: str, lesson: str) -> None:
    assert found(lesson, answer) == ["s0"]


@pytest.mark.parametrize(
    ("answer", "lesson"),
    [
        ("sort list", "Sort the words, then list them."),
        ("Kestrel Harbour 1947", "Kestrels nest in harbours; 1947 rows."),
        ("1947", "Take nineteen rows, then forty-seven columns."),
        ("green", "Compare terra incognita."),
        ("2013", "Use two rows and thirteen columns."),
    ],
)
def test_ordinary_words_are_no_answer_in_another_order(answer: str, lesson: str) -> None:
    assert found(lesson, answer) == []


def test_words_that_tasks_talk_about_are_no_answer_in_another_order() -> None:
    asked = [make_scenario(f"t{n}", prompt="Refund the damaged parcel or not?", checks=()) for n in range(3)]
    index = LessonAnswers([*asked, one("refund damaged parcel")], answers)
    assert index.find("For a parcel that is damaged, offer a refund.") == ()
    assert len(index.find("Say refund damaged parcel.")) == 1


@pytest.mark.parametrize("piece", ["analysis", "½", "a1"])
def test_the_time_for_letters_in_the_place_of_digits_grows_with_the_word(piece: str) -> None:
    assert growth(lambda size: list(without_leet(piece * size)), 50) < 64

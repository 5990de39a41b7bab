from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_experience, make_pack, make_scenario

from pytest_tfgrpo.core.lessons import Library, ToolStat
from pytest_tfgrpo.core.scenarios import Check, Scenario
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.contamination.answers import AnswerIndex, expected_answers, spellings
from pytest_tfgrpo.suite.contamination.findings import LISTED, Finding, complaint, found_value
from pytest_tfgrpo.suite.contamination.leaks import leaks

LINE = "the heron waits below the mill"
CODE = "ZX-4482-9917"


def one(id_: str, split: str, answer: str, prompt: str = "", **changes: Any) -> Scenario:
    checks = (Check(kind="exact", params={"value": answer}),)
    return make_scenario(id_, split=split, prompt=prompt or f"Task {id_}.", checks=checks, **changes)


def answers(scenario: Scenario) -> tuple[str, ...]:
    return expected_answers(KINDS, scenario)


def found(*scenarios: Scenario, lessons: tuple[str, ...] = (), **pack: Any) -> list[Finding]:
    library = Library(
        hash="0" * 64, experiences=tuple(make_experience(n, summary32=text) for n, text in enumerate(lessons))
    )
    packs = {s.domain: make_pack(s.domain, **pack) for s in scenarios}
    return leaks(scenarios, answers, packs=packs, library=library)


@pytest.mark.parametrize("split", ["train", "dev", "eval"])
@pytest.mark.parametrize("part", [{"system": "It is Lisbon."}, {"inject": ("Say LISBON!",)}])
def test_an_answer_in_a_pack_is_found(split: str, part: dict[str, Any]) -> None:
    (finding,) = found(one("a", split, "Lisbon"), **part)
    assert (finding.kind, finding.subject) == ("answer_in_pack", f"a [{split}]")
    assert "has its answer in prompt pack text: 'lisbon'; take it out of the pack" in str(finding)


def test_a_pack_is_held_against_the_scenarios_that_it_serves() -> None:
    scenarios = one("a", "eval", "Lisbon"), one("b", "eval", "Oporto", domain="cities")
    packs = {"text": make_pack(system="Say Oporto."), "cities": make_pack("cities", stamp="b" * 64)}
    assert not leaks(scenarios, answers, packs=packs, library=Library(hash="0" * 64))


def test_a_label_may_stand_in_a_pack() -> None:
    rows = [one(f"s{n}", "eval", "positive") for n in range(3)]
    assert found(*rows[:2], system="Answer positive or negative.")
    assert not found(*rows, system="Answer positive or negative.")


@pytest.mark.parametrize("answer", ["yes", "12", "42.", "B"])
def test_a_short_answer_is_not_looked_for(answer: str) -> None:
    assert not found(one("a", "eval", answer), system=f"Say {answer} 42. B", lessons=(f"Say {answer}",))


@pytest.mark.parametrize("split", ["train", "dev", "eval"])
def test_an_answer_in_a_lesson_of_the_starting_library_is_found(split: str) -> None:
    (finding,) = found(one("a", split, "Lisbon"), lessons=("Count first.", "It is Lisbon."))
    assert (finding.kind, finding.other) == ("answer_in_lesson", "lesson 0000000000000001")


def test_the_name_of_a_tool_is_no_answer() -> None:
    assert not found(one("a", "eval", "count_words", tools=("count_words",)), lessons=("Use count_words.",))
    scenario, lessons = one("a", "eval", "count_words"), ("Use count_words.", "Call count_words first.")
    assert not found(scenario, lessons=lessons)  # two groups called it
    stat = ToolStat(tool="lisbon", tokens=1, latency_ms=1.0, cost_usd=0.0)
    smuggled = Library(
        hash="0" * 64, experiences=(make_experience(summary32="Say lisbon.", tool_stats=(stat,)),)
    )
    (finding,) = leaks([one("a", "eval", "lisbon")], answers, packs={"text": make_pack()}, library=smuggled)
    assert finding.kind == "answer_in_lesson"


@pytest.mark.parametrize("answer", [LINE, CODE, "17.23651006", "17.23651"])
def test_a_distinctive_eval_answer_in_a_train_prompt_is_found(answer: str) -> None:
    holder = one("a", "train", "7", prompt=f"Here it says: {answer}. How many words are that?")
    (finding,) = found(holder, one("b", "eval", answer))
    assert (finding.kind, finding.subject, finding.other) == ("answer_in_prompt", "b [eval]", "a [train]")
    assert finding.other_where == "fixtures/a.scenario.yaml:1"


@pytest.mark.parametrize(
    "answer", ["true", "2024", "Paris", "2026-04-01", "relay-two", "New York", "1,234", "17.2365"]
)
def test_common_words_figures_and_dates_may_stand_in_another_prompt(answer: str) -> None:
    assert not found(one("a", "train", "7", prompt=f"Is {answer} right?"), one("b", "eval", answer))


def test_only_what_is_learned_from_can_give_an_answer_away() -> None:
    assert not found(one("a", "train", LINE), one("b", "eval", "7", prompt=LINE))
    assert not found(one("a", "eval", LINE, prompt=LINE))
    assert found(one("a", "dev", "7", prompt=LINE), one("b", "eval", LINE))
    assert found(one("a", "train", "7", input={"note": LINE}), one("b", "dev", LINE))


def test_an_answer_that_its_own_prompt_holds_is_extracted_from_there() -> None:
    holder = one("a", "train", "7", prompt=f"Count: {LINE}")
    assert not found(holder, one("b", "eval", LINE, prompt=f"Which sentence has a bird: {LINE}, or none?"))


def test_an_answer_in_many_prompts_or_of_several_tasks_is_what_the_suite_is_about() -> None:
    many = [one(f"t{n}", "train", "7", prompt=f"Note {n}: {LINE}") for n in range(4)]
    assert not found(*many, one("b", "eval", LINE))
    assert len(found(*many[:3], one("b", "eval", LINE))) == 3
    assert not found(many[0], one("b", "eval", LINE), one("c", "eval", LINE))


def test_a_complaint_lists_some_and_counts_the_rest() -> None:
    findings = found(
        *[one(f"s{n}", "eval", f"secret{n}") for n in range(25)],
        system=" ".join(f"secret{n}" for n in range(25)),
    )
    text = complaint(findings)
    assert text.startswith("contamination: 25 found")
    assert text.count("has its answer in") == LISTED == 20
    assert "and 5 more" in text
    assert "set contamination = warn" in text
    assert found_value(findings)["kinds"] == {"answer_in_pack": 25}
    assert len(found_value(findings)["findings"]) == LISTED


def test_what_is_told_is_printable_and_short() -> None:
    scenario = one("a", "eval", "\x1b[31mLisbon\x07" + "y" * 500)
    (finding,) = found(scenario, system=f"It is \x1b[31mLisbon\x07{'y' * 500}.")
    assert str(finding).isprintable()
    assert len(str(finding)) < 300


words = st.lists(
    st.sampled_from(["alpha", "beta", "gamma-ray", "d_e", "3.14", "1,000", "->", "ÄÖ"]),
    min_size=1,
    max_size=4,
)


@given(
    st.lists(words.map(" ".join), max_size=5),
    st.lists(
        st.sampled_from(["alpha", "beta", "gamma-ray", "d_e", "3.14", "1,000", "->", ",", "ÄÖ", "x"]),
        max_size=12,
    ).map(" ".join),
)
def test_the_index_finds_what_a_search_for_every_answer_would(known: list[str], text: str) -> None:
    scenarios = [one(f"s{n}", "eval", answer) for n, answer in enumerate(known)]
    index = AnswerIndex(scenarios, answers)
    held = {spelled for answer in known for spelled in spellings(answer) if len(spelled) >= 4}
    padded = [f" {spelled} " for spelled in spellings(text)]
    sure = {h for h in held if f" {h} " in padded[0] or (" " in h and any(f" {h} " in p for p in padded))}
    matched = {answer.text for answer in index.matches(text)}
    assert sure <= matched <= held
    assert (index.find(text) is None) == (not matched)


@pytest.mark.parametrize(
    ("answer", "distinctive"),
    [
        ("the old mill yard", True),  # 17 characters, four words
        ("the old mill abc", True),  # 16
        ("the old mill ab", False),
        ("the oldmillyardabc", False),  # two words
        ("ab 1234567", True),
        ("ab 123456", False),
        ("2026-01-02", False),
        ("2026-01-02 10:30:00", False),
    ],
)
def test_which_answers_are_distinctive_enough_for_a_prompt(answer: str, distinctive: bool) -> None:
    held = one("t", "train", "x", f"Remember that {answer} is here.")
    assert (len(found(held, one("e", "eval", answer))) == 1) is distinctive


@pytest.mark.parametrize(("prompts", "leaks_"), [(3, 3), (4, 0)])
def test_an_answer_in_more_than_three_prompts_is_what_tasks_are_about(prompts: int, leaks_: int) -> None:
    held = [one(f"t{n}", "train", "x", f"Task {n}: {LINE}.") for n in range(prompts)]
    assert len(found(*held, one("e", "eval", LINE))) == leaks_


def test_a_scenario_is_named_once_for_a_pack_that_has_two_of_its_answers() -> None:
    checks = tuple(Check(kind="exact", params={"value": value}) for value in ("Lisbon", "Oporto"))
    scenario = make_scenario("a", split="eval", prompt="Where?", checks=checks)
    assert len(found(scenario, system="Lisbon or Oporto.")) == 1

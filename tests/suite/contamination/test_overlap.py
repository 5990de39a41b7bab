import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import make_scenario
from support.growth import growth
from support.reached import reached, reaches

from pytest_tfgrpo.core.scenarios import Attachment, Check, Scenario, WorkspaceArchive, WorldStep
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.contamination.answers import expected_answers
from pytest_tfgrpo.suite.contamination.findings import Finding
from pytest_tfgrpo.suite.contamination.overlap import alike, overlaps
from pytest_tfgrpo.suite.contamination.paraphrases import (
    MIN_NUMBERS,
    MIN_QUOTED,
    are_telling,
    quotations,
)
from pytest_tfgrpo.suite.contamination.similar import COMMON, similar

LONG = (
    "The warehouse in Leeds received a delivery of forty crates from the harbour this morning, and the "
    "foreman Ana counted the broken ones twice before lunch. Tell the office how many crates it must order "
    "again."
)
OTHER = (
    "Our choir sings on Sunday in the old chapel near the river, where the organ was tuned last spring by a "
    "man from the next village. Find out which hymn comes first and write its number on the board."
)


def one(id_: str, split: str, prompt: str, answer: str = "7", **changes: Any) -> Scenario:
    checks = (Check(kind="exact", params={"value": answer}),)
    return make_scenario(id_, split=split, prompt=prompt, checks=checks, **changes)


def found(*scenarios: Scenario) -> list[Finding]:
    return overlaps(scenarios, lambda scenario: expected_answers(KINDS, scenario))


def kinds(*scenarios: Scenario) -> list[str]:
    return [finding.kind for finding in found(*scenarios)]


def twins(prompt: str, other: str, answer: str = "7", other_answer: str = "7") -> list[str]:
    return kinds(one("a", "train", prompt, answer), one("b", "eval", other, other_answer))


PARAPHRASES = [
    (
        "How many words are in 'the sly fox ran over a lazy hen'?",
        'Count the words of "the sly fox ran over a lazy hen".',
    ),
    (
        "Net price 1,250.40, tax 19 %, shipping 12.90: what is due?",
        "Add 19 % tax to 1250.40 and 12.90 for the parcel.",
    ),
    (
        "Which weekday is 2026-03-14, 45 days after 2026-01-28?",
        "From 2026-01-28 we wait 45 days, to 2026-03-14. Day?",
    ),
]


@pytest.mark.parametrize("piece", ["“", "„", "«", "`", "'", "‘", '"', "` ", "'a ", "“a ", "``a"])
def test_the_time_to_find_quotations_grows_with_the_text(piece: str) -> None:
    assert growth(lambda n: quotations(piece * n, None), 100_000 // 16 // len(piece)) < 64


@pytest.mark.parametrize(("text", "other"), PARAPHRASES)
def test_the_same_data_with_the_same_answer_is_found_in_any_wording(text: str, other: str) -> None:
    (finding,) = found(one("a", "train", text), one("b", "eval", other))
    assert finding.kind == "paraphrase"
    assert "want the same answer about the same data, in other words" in str(finding)
    assert twins(text, other, "7", "8") == []
    assert twins(text, re.sub(r"fox|1250|45", "46", other)) == []
    assert [(a.id, b.id) for a, b in alike([one("a", "train", text), one("b", "train", other)])] == [
        ("a", "b")
    ]
    assert list(alike([one("a", "train", text), one("b", "train", other, "8")])) == []


def test_the_input_of_a_task_is_data_too() -> None:
    rows = {"rows": [{"name": "Ada Lovelace"}, {"name": "Grace Hopper"}]}
    pair = [
        one("a", "train", "How many names are there?", "2", input=rows),
        one("b", "eval", "Count them.", "2", input=rows),
    ]
    assert kinds(*pair) == ["paraphrase"]
    assert kinds(pair[0], replace(pair[1], input={"rows": [{"name": "Ada Lovelace"}]})) == []


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("How many words has 'a b c'?", "Count the words of 'a b c'."),  # too short to be nobody else's
        ("Add 3 and 4.", "Ben has 3 apples and gets 4 more."),
        ("What is 120 plus 45?", "A parcel of 120 g lies on one of 45 g."),  # two numbers
        ("Is it polite?", "Would you say that is rude?"),
    ],
)
def test_little_data_may_be_that_of_another_task(text: str, other: str) -> None:
    assert twins(text, other) == []


def test_the_same_words_in_two_splits_are_found_whatever_the_typography() -> None:
    (finding,) = found(one("a", "train", "How many crates?"), one("b", "eval", "how many  CRATES"))
    assert (finding.kind, finding.similarity) == ("same_task", 1.0)
    assert (finding.subject, finding.other) == ("b [eval]", "a [train]")
    assert (finding.where, finding.other_where) == (
        "fixtures/b.scenario.yaml:1",
        "fixtures/a.scenario.yaml:1",
    )
    assert "set the same split for both" in str(finding)


@pytest.mark.parametrize("pair", [("train", "dev"), ("train", "eval"), ("dev", "eval")])
def test_every_pair_of_splits_is_looked_at(pair: tuple[str, str]) -> None:
    assert kinds(one("a", pair[0], LONG), one("b", pair[1], LONG.upper())) == ["same_task"]
    assert kinds(one("a", pair[0], LONG), one("b", pair[1], f"Please note. {LONG}")) == ["similar"]


def test_one_split_may_repeat_itself() -> None:
    assert not found(one("a", "train", LONG), one("b", "train", LONG), one("c", "train", LONG + " Please."))


@pytest.mark.parametrize(
    "edited",
    [
        LONG.replace("Ana", "Zebedee"),
        LONG.replace("Leeds", "Norwich").replace("Ana", "Otto"),
        LONG + " Answer with the number alone and take your time.",
        "You are the clerk on duty. " + LONG,
        " ".join(reversed(re.split(r"(?<=\.) ", LONG))),
    ],
)
def test_a_task_with_a_name_changed_or_a_sentence_added_is_similar(edited: str) -> None:
    assert twins(LONG, edited) == ["similar"]


@pytest.mark.parametrize(
    ("prompt", "edited"),
    [
        (LONG.replace("forty", "40"), LONG.replace("forty", "41")),
        (LONG + " Add 3 + 4.", LONG + " Add 3 - 4."),
        (LONG, OTHER),
        ("What is the capital of France?", "What is the capital of Spain?"),
        ("", OTHER),
    ],
)
def test_a_task_with_other_data_is_another_task(prompt: str, edited: str) -> None:
    assert twins(prompt, edited) == []


def test_the_same_wording_with_another_answer_is_another_task() -> None:
    edited = LONG.replace("Ana", "Otto")
    assert twins(LONG, edited, "seven crates", "nine crates") == []
    assert twins(LONG, edited, "7", "7 crates") == ["similar"]
    assert twins(LONG, LONG.upper(), "seven", "nine") == ["same_task"]


def test_instructions_that_many_tasks_share_do_not_make_them_similar() -> None:
    tasks = [f"{LONG} The word is {chr(97 + n) * 5}." for n in range(COMMON + 1)]
    scenarios = [one(f"s{n}", ("train", "eval")[n % 2], task) for n, task in enumerate(tasks)]
    assert not found(*scenarios)
    again = one("again", "eval", tasks[0].replace("The word", "the word"))
    assert kinds(*scenarios, again) == ["same_task"]


def test_input_is_part_of_the_task() -> None:
    a, b = (
        one("a", "train", "Sum up.", input={"x": 1, "y": [2]}),
        one("b", "eval", "Sum up", input={"y": [2], "x": 1}),
    )
    assert kinds(a, b) == ["same_task"]
    assert kinds(a, replace(b, input={"x": 1, "y": [3]})) == []
    assert kinds(replace(a, prompt=""), replace(b, prompt="")) == ["same_task"]
    assert kinds(replace(a, prompt=LONG), replace(b, prompt=LONG, input={"x": 9, "y": [8]})) == []


def test_a_long_prompt_with_and_without_data_is_found() -> None:
    bare, fed = one("a", "train", LONG), one("b", "eval", LONG + "!", input={"x": 5, "note": OTHER})
    assert kinds(bare, fed)[0] == "same_prompt"
    assert kinds(bare, replace(fed, split="train")) == []
    assert kinds(one("a", "train", "Sum up."), one("b", "eval", "Sum up.", input=5)) == []


def test_data_tells_by_so_many_letters_or_by_numbers_of_several_digits() -> None:
    assert are_telling((), ("a" * MIN_QUOTED,))
    assert not are_telling((), ("a" * (MIN_QUOTED - 1), "., -"))
    numbers = tuple(str(n) for n in range(10, 10 + MIN_NUMBERS))
    assert are_telling(numbers, ())
    assert not are_telling((*numbers[1:], numbers[1], "7", "8", "9"), ())


def test_files_are_told_apart_by_their_content() -> None:
    def file(name: str, digest: str) -> tuple[Attachment, ...]:
        return (Attachment(name=name, path=Path(name), sha256=digest * 64),)

    a = one("a", "train", LONG, attachments=file("a.csv", "1"))
    assert kinds(a, one("b", "eval", LONG, attachments=file("b.csv", "1"))) == ["same_task"]
    assert kinds(a, one("b", "eval", LONG, attachments=file("a.csv", "2"))) == []
    assert kinds(a, one("b", "eval", LONG + " Now.", attachments=file("a.csv", "2"))) == []
    assert "same_prompt" in kinds(a, one("b", "eval", LONG))


def test_ten_thousand_equal_prompts_are_one_finding_for_each_pair_of_splits() -> None:
    scenarios = [one(f"s{n}", ("train", "eval")[n % 2], LONG) for n in range(10_000)]
    (finding,) = found(*scenarios)
    assert finding.more == 9_998
    assert "and 9998 more" in str(finding)


@pytest.mark.parametrize(
    "text",
    [
        "".join(chr(0x4E00 + 7 * n) for n in range(40)),
        "".join(chr(0x1F600 + n) for n in range(40)),
        " ".join("".join(chr(0x5D0 + (n * k) % 22) for k in range(1, 5)) for n in range(3, 24)),
    ],
    ids=["han", "emoji", "hebrew"],
)
def test_any_script_is_compared(text: str) -> None:
    assert twins(text, text + "。") == ["same_task"]
    assert twins(text, text + chr(0x4E01)) == ["similar"]
    assert twins(text, text[::-1]) == []


def test_a_megabyte_of_one_word_is_no_burden_and_equal_to_itself_alone() -> None:
    huge = "word " * 200_000
    assert twins(huge, huge + " ") == ["same_task"]
    assert twins(huge, "word word word word") == []
    assert twins("x" * 1_000_000, "x" * 1_000_001) == []
    assert twins(huge + "a", huge + "b") == []


def test_signs_alone_are_compared_too() -> None:
    assert twins("?!?", "?!?  ") == ["same_task"]
    assert twins("?!?", "!?!") == []


@st.composite
def texts(draw: Any) -> list[list[str]]:
    """Draw texts of which some are others with a few words more."""
    found = [
        list("abcdefghijklmnop"),
        *draw(st.lists(st.lists(st.sampled_from("abcdef"), max_size=14), max_size=4)),
    ]
    for _ in range(draw(st.integers(0, 3))):
        more = draw(st.lists(st.sampled_from("xyz"), max_size=3))
        found.append([*draw(st.sampled_from(found)), *more])
    return [list(words) for words in dict.fromkeys(map(tuple, draw(st.permutations(found))))]


@reaches("pairs", "none")
@settings(max_examples=60)
@given(texts(), st.randoms(use_true_random=False))
def test_pairs_do_not_depend_on_the_order_of_texts(words: list[list[str]], rng: random.Random) -> None:
    sides = [1 << rng.randrange(3) for _ in words]
    order = rng.sample(range(len(words)), len(words))
    one = {(frozenset((p.first, p.second)), p.similarity) for p in similar(words, sides)}
    reached("pairs" if one else "none")
    two = similar([words[i] for i in order], [sides[i] for i in order])
    assert one == {(frozenset((order[p.first], order[p.second])), p.similarity) for p in two}


@reaches("by the Jaccard index", "by what is contained", "not alike")
@settings(max_examples=60)
@given(
    st.lists(st.sampled_from("abcdefghijkl"), max_size=40) | st.permutations("abcdefghijkl"),
    st.lists(st.sampled_from("xyz"), max_size=4) | st.permutations("tuvwxyz"),
)
def test_a_pair_is_as_alike_as_its_sequences(common: list[str], tail: list[str]) -> None:
    one, two = common, [*common, *tail, "end"]
    sequences = [{tuple(t[i : i + 3]) for i in range(len(t) - 2)} for t in (one, two)]
    shared = len(sequences[0] & sequences[1])
    alike = list(similar([one, two], [1, 4]))
    jaccard = shared / max(1, len(sequences[0] | sequences[1]))
    reached("by the Jaccard index", jaccard >= 0.6 and shared >= 5)
    reached("by what is contained", jaccard < 0.6 and shared >= 8)
    reached("not alike", not alike)
    assert bool(alike) == (shared >= 8 or (shared >= 5 and jaccard >= 0.6))
    assert all(pair.similarity == 1.0 or pair.similarity == pytest.approx(jaccard) for pair in alike)


def test_equal_prompts_over_other_projects_are_other_tasks() -> None:
    def fix(id_: str, split: str, digest: str) -> Scenario:
        archive = WorkspaceArchive(archive=f"{id_}.tar.gz", path=Path(f"{id_}.tar.gz"), sha256=digest * 64)
        return one(id_, split, LONG, workspace=archive)

    assert kinds(fix("a", "train", "1"), fix("b", "eval", "2")) == []
    assert kinds(fix("a", "train", "1"), fix("b", "eval", "1")) == ["same_task"]


def test_a_prompt_of_20_words_is_long_enough_to_stand_alone() -> None:
    for words, enough in ((20, True), (19, False)):
        text = " ".join(LONG.split()[:words])
        shared = kinds(one("a", "train", text), one("b", "eval", text, input={"n": "data"}))
        assert ("same_prompt" in shared) is enough


def test_a_workspace_and_a_setup_are_data_of_a_task() -> None:
    archive = WorkspaceArchive(archive="a.tar.gz", path=Path("a.tar.gz"), sha256="1" * 64)
    other = replace(archive, sha256="2" * 64)
    steps = [WorldStep(command=("sh", name)) for name in ("a", "b")]
    data: dict[str, tuple[Any, Any]] = {"workspace": (archive, other), "setup": (steps[0], steps[1])}
    for key, (mine, theirs) in data.items():
        first = one("a", "train", LONG, "7", **{key: mine})
        assert kinds(first, one("b", "eval", LONG, "7", **{key: mine})) == ["same_task"]
        assert kinds(first, one("b", "eval", LONG, "7", **{key: theirs})) == []


def test_only_what_is_the_same_is_wholly_alike() -> None:
    (finding,) = found(one("a", "train", LONG), one("b", "eval", LONG.replace("again", "anew")))
    assert finding.kind == "similar"
    assert 0.5 < finding.similarity < 0.999
    (finding,) = found(one("a", "train", LONG), one("b", "eval", f"{LONG} The end of it."))
    assert (finding.kind, finding.similarity) == ("similar", 0.999)


def test_all_answers_of_two_tasks_are_compared_up_to_20() -> None:
    def answers(scenario: Scenario) -> list[str]:
        return [f"{scenario.id}{n}" for n in range(scenario.input)] + ["shared"]

    def both(n: int) -> list[Finding]:
        first = make_scenario("a", split="train", prompt=LONG, input=n)
        second = make_scenario("b", split="eval", prompt=LONG.replace("again", "anew"), input=n)
        return overlaps([first, second], answers)

    pair = (
        make_scenario("a", split="train", prompt=LONG),
        make_scenario("b", split="eval", prompt=LONG.replace("again", "anew")),
    )
    for answer, alike_ in ((" \n", True), ("", True), ("other", False)):
        told = overlaps(pair, lambda one, said=answer: [said if one.id == "a" else "right"])
        assert bool(told) is alike_
    assert [finding.kind for finding in both(19)] == ["similar"]
    assert both(20) == []


def test_further_scenarios_of_which_the_same_is_true_are_counted() -> None:
    suite = [one(f"t{n}", "train", LONG) for n in range(3)] + [one(f"e{n}", "eval", LONG) for n in range(2)]
    (finding,) = found(*suite)
    assert (finding.subject, finding.other, finding.more) == ("e0 [eval]", "t0 [train]", 3)


def test_of_three_splits_the_two_that_are_furthest_apart_are_named() -> None:
    suite = [one("d", "dev", LONG), one("t", "train", LONG), one("e", "eval", LONG.replace("again", "anew"))]
    similar_ones = [finding for finding in found(*suite) if finding.kind == "similar"]
    assert [(finding.subject, finding.other) for finding in similar_ones] == [("e [eval]", "t [train]")]

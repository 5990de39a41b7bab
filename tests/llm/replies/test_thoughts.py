"""What of a reply is thoughts, and what is the answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.llm.replies.thoughts import PAIRS, part_thoughts

HARMONY = "<|channel|>analysis<|message|>Paris? No.<|end|><|start|>assistant<|channel|>final<|message|>Rome"


@pytest.mark.parametrize(
    "text",
    [
        "<think>Paris? No.</think>Rome",
        "<think>\nParis? No.\n</think>\n\nRome",
        "\n <THINK>Paris? No.</Think> Rome",
        "<thinking>Paris? No.</thinking>\nRome",
        "<thought>Paris? No.</thought>Rome",
        "<reasoning>Paris? No.</reasoning>Rome",
        "<seed:think>Paris? No.</seed:think>Rome",
        "<longcat_think>Paris? No.</longcat_think>Rome",
        '<think effort="low">Paris? No.</think>Rome',
        "[THINK]Paris? No.[/THINK]Rome",
        "◁think▷Paris? No.◁/think▷Rome",
        "<|begin_of_thought|>Paris? No.<|end_of_thought|>\n<|begin_of_solution|>Rome<|end_of_solution|>",
        "<|START_THINKING|>Paris? No.<|END_THINKING|><|START_RESPONSE|>Rome<|END_RESPONSE|>",
        "<unused94>thought\nParis? No.<unused95>Rome",
        "<|channel>thought\nParis? No.<channel|>Rome",
        '<details type="reasoning" done="true">\nParis? No.\n</details>\nRome',
        '<details type="reasoning" done="true" duration="12">\n<summary>Thought for 12 seconds</summary>\n'
        "Paris? No.\n</details>\nRome",
        "<|START_THINKING|>Paris? No.<|END_THINKING|><|START_TEXT|>Rome<|END_TEXT|>",
        "Here are my reasoning steps:\nParis? No.\n[BEGIN FINAL RESPONSE]\nRome\n[END FINAL RESPONSE]",
        "Paris? No.\n[BEGIN FINAL RESPONSE]\nRome\n<|end|>",
        "<scratchpad>Paris? No.</scratchpad>\nRome",
        "<antThinking>Paris? No.</antThinking>Rome",
        "<|think|>Paris? No.<|/think|>Rome",
        "<|thinking|>Paris? No.<|/thinking|>Rome",
        "[thinking]Paris? No.[/thinking]Rome",
        "&lt;think&gt;Paris? No.&lt;/think&gt;Rome",
        "<think>Paris? No.</think><|im_end|>Rome",
        "<think>Paris? No.</think>Rome<|im_end|>",
        "Here is my thought process: Paris? No. Here is my response: Rome",
        "Paris? No.\n</think>\n\nRome",
        "Paris? No.</think>Rome",
        "Paris? No.[/THINK]Rome",
        HARMONY,
        f"<|start|>assistant{HARMONY}<|return|>",
        "analysisParis? No.assistantfinalRome",
        "\ufeff<think>Paris? No.</think>Rome",
    ],
)
def test_thoughts_at_the_beginning_are_parted(text: str) -> None:
    found = part_thoughts(text)
    assert (found.answer, found.thoughts, found.unclosed) == ("Rome", "Paris? No.", "")


@pytest.mark.parametrize(
    "mark",
    ["<|im_end|>", "\n<|eot_id|>", "</s>", " </s>", "<end_of_turn>\n", "<|endoftext|>", "<|im_end|></s>"],
)
def test_end_marks_of_templates_are_no_part_of_the_answer(mark: str) -> None:
    assert part_thoughts(f"Rome{mark}") == ("Rome", "", "")


@pytest.mark.parametrize(
    "text",
    [
        "It ends with <|im_end|>",
        "It ends with `<|im_end|>`",
        "Not <s>Paris</s>",
        "</s>",
        "Rome \n",
        "<analysis>a</analysis>Rome",
        "<reflection>a</reflection>Rome",
        "<reason>a</reason>Rome",
        '<details type="x">a</details>Rome',
        "Here are my reasoning steps: 1. Paris is in France.",
        "It writes `[BEGIN FINAL RESPONSE]` first",
    ],
)
def test_what_the_answer_is_about_stays(text: str) -> None:
    assert part_thoughts(text) == (text, "", "")


def test_the_marks_around_an_answer_without_thoughts_are_no_part_of_it() -> None:
    assert part_thoughts("<|START_TEXT|>Rome<|END_TEXT|>").answer == "Rome"


@pytest.mark.parametrize(
    ("text", "answer", "thoughts"),
    [
        ("<think></think>Rome", "Rome", ""),
        ("</think>\n\nRome", "Rome", ""),
        ("<think>a</think>\n<think>b</think>Rome", "Rome", "a\n\nb"),
        ("a\n</think>\nb\n</think>\nRome", "Rome", "a\n\nb"),
        ("<think>a</think>\nb\n</think>\n\nRome", "Rome", "a\n\nb"),
        ("<think>a</think>Rome </think> b", "Rome </think> b", "a"),
        ("<think>a</think>Rome\n```\n</think>\n```", "Rome\n```\n</think>\n```", "a"),
        ("hm</think><think>b</think>Rome", "Rome", "hm\n\nb"),
        ("<think>a<think>b</think>c</think>Rome", "Rome", "a<think>b</think>c"),
        ("<think>the <think> tag</think>Rome", "Rome", "the <think> tag"),
        ("<think>its end `</think>`</think>Rome", "Rome", "its end `</think>`"),
        ("<think>a</think>Write <think>x</think> so", "Write <think>x</think> so", "a"),
        ("<think>a</think>\n\n    def f():\n        pass", "    def f():\n        pass", "a"),
        ("<think>a</think><answer>Rome</answer>", "<answer>Rome</answer>", "a"),
    ],
)
def test_which_end_is_the_end(text: str, answer: str, thoughts: str) -> None:
    assert part_thoughts(text)[:2] == (answer, thoughts)


@pytest.mark.parametrize(
    "text",
    [
        "Rome",
        "",
        " Rome\n",
        "Sure. <think>Paris? No.</think>Rome",
        "The tag <think> begins thoughts.",
        "Use `<think>a</think>` for it.",
        "`</think>` ends thoughts.",
        'It ends with "</think>", always.',
        "```html\n<think>a</think>\n```",
        "```\nanswer</think>\n```\nis a stray end",
        "<thinker>Rodin</thinker>",
        "Here is my thought process: none",
        "analysis of the final: Rome",
    ],
)
def test_a_tag_further_on_in_code_or_in_quotes_is_part_of_the_answer(text: str) -> None:
    assert part_thoughts(text) == (text, "", "")


@pytest.mark.parametrize(
    ("text", "unclosed"),
    [
        ("<think>Paris? N", "<think>"),
        ("[THINK]Paris? N", "[THINK]"),
        ("<|channel|>analysis<|message|>Paris? N", "<|channel|>analysis"),
    ],
)
def test_thoughts_that_never_end_leave_no_answer(text: str, unclosed: str) -> None:
    assert part_thoughts(text) == ("", "Paris? N", unclosed)


def test_other_tags_may_be_named_and_all_be_switched_off() -> None:
    text = "<plan>a</plan>Rome"
    assert part_thoughts(text) == (text, "", "")
    assert part_thoughts(text, (("<plan>", "</plan>"),)) == ("Rome", "a", "")
    assert part_thoughts("<think>a</think>b", (("<plan>", "</plan>"),)).answer == "<think>a</think>b"
    assert part_thoughts("<think>a</think>b", False) == ("<think>a</think>b", "", "")


def test_a_call_in_the_harmony_format_stays_to_be_read() -> None:
    call = '<|channel|>commentary to=functions.look <|constrain|>json<|message|>{"q": 1}'
    found = part_thoughts(f"<|channel|>analysis<|message|>hm<|end|><|start|>assistant{call}<|call|>")
    assert (found.answer, found.thoughts) == (call, "hm")


TAGS = ["<think>", "</think>", "<thinking>", "`", '"', "\n", "```\n", " ", "a", *PAIRS[0], HARMONY, "<|end|>"]


@given(st.lists(st.sampled_from(TAGS), max_size=12).map("".join))
def test_nothing_is_invented_and_what_is_parted_stays_parted(text: str) -> None:
    found = part_thoughts(text)
    assert found.answer in text or text.count("<|channel|>final") > 1
    assert all(line in text for line in found.answer.split("\n"))
    assert not (found.unclosed and found.answer)
    if not found.thoughts and not found.unclosed and "think" not in text.lower():
        assert found.answer.strip() in text


@pytest.mark.parametrize(
    "text",
    [
        "<think>" * 100_000,
        "<think><think></think>" * 50_000,
        " " * 500_000 + "x",
        "<|channel|>" * 50_000,
        "<|im_end|>" * 100_000,
        '<details type="reasoning">' * 50_000,
        "`[BEGIN FINAL RESPONSE]" * 50_000,
    ],
    ids=["open", "nested", "blank", "channels", "marks", "details", "steps"],
)
def test_a_hostile_reply_takes_no_long_time(text: str) -> None:
    part_thoughts(text)

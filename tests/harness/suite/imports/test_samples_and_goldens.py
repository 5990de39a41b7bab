"""Samples of Inspect AI and goldens of DeepEval become scenarios."""

import json

import pytest

from pytest_tfgrpo.core.errors import ScenarioError


def lines(*values):
    return "".join(json.dumps(value) + "\n" for value in values)


def test_a_sample_expects_its_target_in_the_answer(imported):
    sample = {"id": 7, "input": "Capital of France?", "target": "Paris", "metadata": {"level": 1}}
    found = imported("inspect", "s.jsonl", lines(sample))
    assert found.scenarios == [
        {"id": "7", "checks": [{"kind": "contains", "value": "Paris"}], "prompt": "Capital of France?"}
    ]
    assert list(found.report()) == ["not carried over, 1 time: `metadata` (first: s.jsonl:1)"]


def test_choices_become_a_question_for_a_letter(imported):
    sample = {"input": "Which is a fruit?", "choices": ["lamp", "pear"], "target": "B"}
    (scenario,) = imported("inspect", "s.json", json.dumps([sample])).scenarios
    assert scenario["prompt"] == (
        "Which is a fruit?\n\nA) lamp\nB) pear\n\nAnswer with the letter of the right choice alone."
    )
    assert scenario["checks"] == [{"kind": "exact", "value": "B", "ignore_case": True}]


def test_one_of_several_targets_is_enough(imported):
    sample = {"input": "Name a primary colour.", "target": ["red", "blue (navy)"]}
    (scenario,) = imported("inspect", "s.jsonl", lines(sample), expect="exact").scenarios
    assert scenario["checks"] == [{"kind": "regex", "pattern": r"\A\s*(?:red|blue\ \(navy\))\s*\Z"}]


def test_a_chat_with_one_message_is_a_task_and_a_longer_one_is_not(imported):
    one = {"input": [{"role": "user", "content": "Hi"}], "target": "Hello"}
    more = {"input": [{"role": "system", "content": "s"}, {"role": "user", "content": "Hi"}], "target": "x"}
    found = imported("inspect", "s.jsonl", lines(one, more, {"input": "x"}))
    assert [scenario["prompt"] for scenario in found.scenarios] == ["Hi"]
    assert [text.partition(": ")[2] for text in found.report()] == [
        "conversations, and system messages (they belong into a prompt pack) (first: s.jsonl:2)",
        "samples without target (first: s.jsonl:3)",
    ]


GOLDEN = {
    "input": "Refund order 7",
    "actual_output": None,
    "expected_output": "It is refunded.",
    "context": ["Orders can be refunded for 30 days."],
    "expected_tools": [{"name": "refund", "input_parameters": {"order": 7}}],
    "name": "refund",
    "comments": "from support",
}


def test_a_golden_expects_its_tools_and_a_judge_reads_its_output(imported):
    found = imported("deepeval", "g.json", json.dumps([GOLDEN]))
    assert found.scenarios == [
        {
            "id": "refund",
            "prompt": "Refund order 7",
            "input": {"context": ["Orders can be refunded for 30 days."]},
            "rubric": "The answer agrees with this expected answer: It is refunded.",
            "checks": [
                {
                    "kind": "tool_calls",
                    "order": "any_order",
                    "calls": [{"name": "refund", "arguments": {"order": 7}}],
                }
            ],
        }
    ]
    assert list(found.report()) == ["not carried over, 1 time: `comments` (first: g.json:1)"]


def test_a_golden_without_tools_is_judged_or_checked_as_you_say(imported):
    golden = {"input": "2 + 2?", "expected_output": "4"}
    (judged,) = imported("deepeval", "g.jsonl", lines(golden)).scenarios
    (checked,) = imported("deepeval", "g.jsonl", lines(golden), expect="number").scenarios
    assert (judged["truth"], "checks" in judged) == ("judge", False)
    assert checked["checks"] == [{"kind": "number", "value": 4.0}]


def test_a_table_of_goldens_has_lists_parted_by_semicolons(imported):
    text = "input,expected_output,context,expected_tools\nHi,Hello,a;b,search;open\n"
    (scenario,) = imported("deepeval", "g.csv", text, expect="exact").scenarios
    assert scenario["input"] == {"context": ["a", "b"]}
    assert scenario["checks"][1]["calls"] == [{"name": "search"}, {"name": "open"}]


def test_conversations_and_goldens_that_expect_nothing_are_left_out(imported):
    found = imported("deepeval", "g.jsonl", lines({"scenario": "angry", "turns": []}, {"input": "Hi"}))
    assert found.scenarios == []
    assert len(list(found.report())) == 2


@pytest.mark.parametrize(
    ("form", "options"), [("promptfoo", {"expect": "exact"}), ("deepeval", {"prompt": "q"})]
)
def test_an_option_that_a_format_has_no_use_for_is_refused(imported, form, options):
    with pytest.raises(ScenarioError, match=f"a file of {form}"):
        imported(form, "x.json", "{}", **options)

"""Samples of Inspect AI and goldens of DeepEval become scenarios."""

import json

import pytest

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.suite.imports.formats import write_scenarios


def lines(*values):
    return "".join(json.dumps(value) + "\n" for value in values)


def test_a_sample_expects_its_target_in_the_answer(imported):
    sample = {"id": 7, "input": "Capital of France?", "target": "Paris", "metadata": {"level": 1}}
    found = imported("inspect", "s.jsonl", lines(sample))
    assert found.scenarios == [
        {"id": "7", "checks": [{"kind": "contains", "value": "Paris"}], "prompt": "Capital of France?"}
    ]
    assert list(found.report()) == ["not carried over, 1 time: `metadata` (first: s.jsonl:1)"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [(" ", "empty"), ({"a": 1}, "an object with the keys a"), (None, "null"), (["Hi"], "a list")],
)
def test_a_sample_without_a_task_is_counted(imported, asked, told):
    whole = {"input": "Capital of France?", "target": "Paris"}
    found = imported("inspect", "s.jsonl", lines({"input": asked, "target": "x"}, whole))
    assert len(found.scenarios) == 1
    assert list(found.report()) == [f"not carried over, 1 time: inputs that are {told} (first: s.jsonl:1)"]


def test_choices_become_a_question_for_a_letter(imported):
    sample = {"input": "Which is a fruit?", "choices": ["lamp", "pear"], "target": "B"}
    (scenario,) = imported("inspect", "s.json", json.dumps([sample])).scenarios
    assert scenario["prompt"] == (
        "Which is a fruit?\n\nA) lamp\nB) pear\n\nAnswer with the letter of the right choice alone."
    )
    assert scenario["checks"] == [{"kind": "exact", "value": "B", "ignore_case": True}]


def test_the_choices_of_a_conversation_stand_in_its_last_turn(imported):
    talk = chat(("user", "Hi"), ("assistant", "Yes?"), ("user", "Which?"))
    sample = {"input": talk, "choices": ["x", "y"], "target": "B"}
    (scenario,) = imported("inspect", "s.json", json.dumps([sample])).scenarios
    first, last = scenario["turns"]
    assert (first, last.splitlines()[:4]) == ("Hi", ["Which?", "", "A) x", "B) y"])
    assert "choices" not in scenario


@pytest.mark.parametrize("choices", [["", "x", "y"], ",x,y"])
def test_an_empty_choice_keeps_its_letter(imported, choices):
    sample = {"input": "Which?", "choices": choices, "target": "B"}
    (scenario,) = imported("inspect", "s.json", json.dumps([sample])).scenarios
    assert "\n\nA) \nB) x\nC) y\n\n" in scenario["prompt"]
    assert scenario["checks"] == [{"kind": "exact", "value": "B", "ignore_case": True}]


@pytest.mark.parametrize(("number", "letters"), [(26, ["Z"]), (27, [])])
def test_there_are_as_many_choices_as_letters(imported, number, letters):
    sample = {"input": "Which?", "choices": [f"c{n}" for n in range(number)], "target": "Z"}
    found = imported("inspect", "s.json", json.dumps([sample]))
    assert [scenario["checks"][0]["value"] for scenario in found.scenarios] == letters
    assert bool(found.left_out) is not bool(letters)


@pytest.mark.parametrize(("target", "letter"), [("B", "B"), ("x", "C")])
def test_a_target_is_a_letter_before_it_is_the_text_of_a_choice(imported, target, letter):
    sample = {"input": "Which?", "choices": ["B", "A", "x"], "target": target}
    (scenario,) = imported("inspect", "s.json", json.dumps([sample])).scenarios
    assert scenario["checks"][0]["value"] == letter


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"choices": {"A": "x"}}, "choices that are an object with the keys A"),
        ({"choices": 3}, "choices that are a number"),
        ({"choices": ["x", None]}, "choices of which one is no text but null"),
        ({"choices": "['x', 'y']"}, "choices in brackets that are no JSON"),
        ({"choices": ["x", "y"], "target": {"a": 1}}, "targets: no text but an object with the keys a"),
        ({"target": {"a": 1}}, "expected answers that are an object with the keys a"),
        ({"target": ["x", None]}, "several expected answers, of which some are null"),
    ],
)
def test_choices_and_targets_of_another_shape_are_left_out(imported, change, told):
    found = imported("inspect", "s.jsonl", lines({"input": "Which?", "target": "A"} | change))
    assert (found.scenarios, found.left_out) == ([], {told: (1, "s.jsonl:1")})


def test_choices_may_be_a_list_as_json_in_a_cell(imported):
    (scenario,) = imported("inspect", "s.csv", 'input,target,choices\nx?,B,"[""a, b"", ""c""]"\n').scenarios
    assert "A) a, b\nB) c\n" in scenario["prompt"]


def test_one_of_several_targets_is_enough(imported):
    sample = {"input": "Name a primary colour.", "target": ["red", "blue (navy)"]}
    (scenario,) = imported("inspect", "s.jsonl", lines(sample), expect="exact").scenarios
    assert scenario["checks"] == [{"kind": "regex", "pattern": r"\A\s*(?:red|blue\ \(navy\))\s*\Z"}]


def test_a_target_that_is_a_reply_of_the_assistant_is_its_text_and_no_other_chat_is(imported):
    rows = [{"input": "Hi", "target": chat((role, "Hello"))} for role in ("assistant", "user")]
    found = imported("inspect", "s.json", json.dumps(rows), expect="exact")
    assert [one["checks"][0]["value"] for one in found.scenarios] == ["Hello"]
    assert [what.partition(",")[0] for what in found.left_out] == ["several expected answers"]


def chat(*messages):
    return [{"role": role, "content": content} for role, content in messages]


def test_a_chat_is_what_its_user_says(imported):
    one = {"input": chat(("system", "Be kind."), ("user", "Hi")), "target": "Hello"}
    talk = chat(("user", "A table."), ("assistant", "When?"), ("user", "Friday."), ("user", "For four."))
    parts = {"input": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], "target": "Hello"}
    found = imported("inspect", "s.jsonl", lines(one, {"input": talk, "target": "booked"}, parts))
    first, second, third = found.scenarios
    assert (first["prompt"], third["prompt"]) == ("Hi", "Hi")
    assert second["turns"] == ["A table.", "Friday.\n\nFor four."]
    assert "prompt" not in second
    assert list(found.report()) == [
        "not carried over, 1 time: messages of the assistant in a chat: the agent writes its own "
        "(first: s.jsonl:2)",
        "not carried over, 1 time: system messages (they belong into a prompt pack) (first: s.jsonl:1)",
    ]


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        (chat(("user", "Hi"), ("tool", "4"), ("user", "So?")), "chats with a tool's message"),
        (
            [{"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]}, *chat(("user", "So?"))],
            "chats in which the assistant called tools",
        ),
        ([{"role": "user", "content": [{"type": "image", "image": "x.png"}]}], "messages that are no text"),
        (chat(("system", "s")), "chats without a message of the user"),
        ([{"role": "narrator", "content": "Hi"}], "messages without a known role"),
    ],
)
def test_a_chat_that_is_no_conversation_here_is_left_out_with_the_reason(imported, messages, told):
    found = imported("inspect", "s.jsonl", lines({"input": messages, "target": "x"}))
    assert found.scenarios == []
    assert told in found.left_out


def test_a_sample_says_what_of_it_is_not_carried_over(imported):
    sample = {
        "input": "2 + 2?",
        "target": 4,
        "sandbox": "docker",
        "checkpoint": {},
        "note": "n",
        "part": "dev",
    }
    found = imported("inspect", "s.jsonl", lines(sample, {"input": "x"}), split="part")
    assert found.scenarios == [
        {
            "id": "s-1",
            "checks": [{"kind": "contains", "value": "4"}],
            "prompt": "2 + 2?",
            "split": "dev",
        }
    ]
    assert list(found.left_out) == ["`sandbox`", "`note`", "samples without target"]


def test_choices_in_a_table_are_parted_by_commas(imported):
    (scenario,) = imported("inspect", "s.csv", 'input,target,choices\nFruit?,B,"lamp,pear"\n').scenarios
    assert scenario["prompt"].startswith("Fruit?\n\nA) lamp\nB) pear")
    assert scenario["checks"][0] == {"kind": "exact", "value": "B", "ignore_case": True}


@pytest.mark.parametrize(
    ("form", "value", "told"),
    [
        (
            "inspect",
            {"version": 2, "eval": {}, "samples": []},
            "not a sample of Inspect: there are version, eval, samples; a sample has 'input'",
        ),
        (
            "deepeval",
            {"test_cases": [{"input": "Hi"}]},
            "not a golden of DeepEval: there are test_cases; a golden has 'input', or 'scenario' and 'turns'",
        ),
        ("deepeval", {"goldens": [["Hi"]]}, r"x\.json:1, goldens\[0\]: not a golden .* there are no keys"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_what_it_has_and_what_belongs_there(
    imported, form, value, told
):
    with pytest.raises(ScenarioError, match=told):
        imported(form, "x.json", json.dumps(value))


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


def test_a_golden_is_called_by_its_name_or_its_id_and_both_are_read(imported):
    named, numbered = {**GOLDEN, "id": "7"}, {**TALK, "id": "8"}
    found = imported("deepeval", "g.json", json.dumps([named, numbered, {**TALK, "name": "talk"}]))
    assert [scenario["id"] for scenario in found.scenarios] == ["refund", "8", "talk"]
    assert not {"`id`", "`name`"} & set(found.left_out)


def test_a_golden_without_tools_is_judged_or_checked_as_you_say(imported):
    golden = {"input": "2 + 2?", "expected_output": "4"}
    (judged,) = imported("deepeval", "g.jsonl", lines(golden)).scenarios
    (checked,) = imported("deepeval", "g.jsonl", lines(golden), expect="number").scenarios
    assert (judged["truth"], "checks" in judged) == ("judge", False)
    assert checked["checks"] == [{"kind": "number", "value": 4.0}]


def test_a_table_of_goldens_has_lists_parted_by_semicolons(imported):
    text = "input,expected_output,context,expected_tools\nHi,Hello,a;b,search; open;\n"
    (scenario,) = imported("deepeval", "g.csv", text, expect="exact").scenarios
    assert scenario["input"] == {"context": ["a", "b"]}
    assert scenario["checks"][1]["calls"] == [{"name": "search"}, {"name": "open"}]


def test_a_golden_of_an_export_has_other_names_and_all_that_is_left_of_it_is_said(imported):
    golden = {
        "input": "Refund order 7",
        "expectedOutput": "It is refunded.",
        "toolsCalled": [{"name": "look"}],
        "expectedTools": [{"name": "refund", "inputParameters": {"order": 7}, "reasoning": "it asks for it"}],
        "tools_used": ["refund"],
        "sourceFile": None,
    }
    dataset = {"goldens": [golden], "conversationalGoldens": [], "datasetId": "d1"}
    found = imported("deepeval", "g.json", json.dumps(dataset))
    (scenario,) = found.scenarios
    assert scenario["rubric"].endswith("It is refunded.")
    assert scenario["checks"][0]["calls"] == [{"name": "refund", "arguments": {"order": 7}}]
    assert set(found.left_out) == {
        "`dataset_id` of the dataset",
        "`tools_called`",
        "`tools_used`",
        "`reasoning` of an expected tool",
    }


TALK = {
    "scenario": "Andy wants a VIP ticket.",
    "expected_outcome": "He has a ticket.",
    "user_description": "Andy Byron, in a hurry.",
    "turns": chat(("user", "Tickets?"), ("assistant", "Which?"), ("user", "VIP.")),
    "comments": "from sales",
}


def test_a_conversational_golden_is_a_conversation_with_whom_a_model_plays(imported, tmp_path):
    found = imported("deepeval", "g.json", json.dumps([TALK]))
    assert found.scenarios == [
        {
            "id": "g-1",
            "turns": ["Tickets?", "VIP."],
            "user": {
                "goal": "Andy wants a VIP ticket.",
                "persona": "Andy Byron, in a hurry.",
                "stop": "This is reached, or cannot be: He has a ticket.",
            },
            "rubric": "The conversation comes to this outcome: He has a ticket.",
            "truth": "judge",
        }
    ]
    assert set(found.left_out) == {
        "`comments`",
        "messages of the assistant in a chat: the agent writes its own",
    }
    _, n = write_scenarios(found, tmp_path, "g", force=False)
    assert n == 1


def test_a_conversational_golden_without_turns_starts_with_a_greeting_and_says_so(imported):
    found = imported("deepeval", "g.jsonl", lines(TALK | {"persona": {"voice": "alloy"}}))
    assert found.scenarios[0]["user"]["persona"] == "Andy Byron, in a hurry."
    persona = {"characteristics": "In a hurry.", "voice": "alloy"}
    row = {"scenario": "s", "expected_outcome": "o", "persona": persona, "context": "a|b"}
    found = imported("deepeval", "g.jsonl", lines(row, TALK | {"turns": "no list"}))
    (scenario,) = found.scenarios
    assert (scenario["turns"], scenario["user"]["persona"]) == (["Hello."], "In a hurry.")
    assert scenario["input"] == {"context": ["a", "b"]}
    assert set(found.left_out) == {
        'a first message that a model writes: the user says "Hello."',
        "`voice` of a persona",
        "`comments`",
        "turns that are no JSON",
    }


@pytest.mark.parametrize(
    ("golden", "told"),
    [
        ({"input": {"q": 1}, "expected_output": "x"}, "inputs that are an object with the keys q"),
        ({"input": "p", "expected_output": {"a": 1}}, "expected answers that are an object with the keys a"),
        ({"input": "p", "expected_output": "x", "expected_tools": 3}, "expected tools that are a number"),
        ({"input": "p", "expected_output": "x", "expected_tools": [{}]}, "expected tools whose name is null"),
        (
            {"input": "p", "expected_output": "x", "expected_tools": [{"name": "t", "inputParameters": [1]}]},
            "arguments of an expected tool that are a list",
        ),
        (
            {"input": "p", "expected_output": "x", "expectedOutput": "y"},
            "`expectedOutput` beside `expected_output`, which says something else",
        ),
        ({"scenario": ["s"], "expected_outcome": "o"}, "`scenario` that is a list"),
        (
            {"scenario": "s", "expected_outcome": {"o": 1}},
            "`expected_outcome` that is an object with the key",
        ),
        ({"scenario": "s", "expected_outcome": "o", "turns": 3}, "turns that are a number"),
        ({"scenario": "s", "expected_outcome": "o", "persona": [1]}, "`persona` that is a list"),
        ({"input": "p", "expected_output": "x", "name": ["n"]}, "`name` that is a list"),
    ],
)
def test_a_value_of_a_golden_of_another_shape_is_counted(imported, golden, told):
    found = imported("deepeval", "g.jsonl", lines(golden))
    assert any(what.startswith(told) for what in found.left_out), found.left_out


def test_a_golden_asks_what_the_user_of_its_chat_says(imported):
    golden = {"input": chat(("system", "Be kind."), ("user", "Hi")), "expected_output": ["Hello", "Hey"]}
    (scenario,) = imported("deepeval", "g.jsonl", lines(golden), expect="contains").scenarios
    assert (scenario["prompt"], scenario["checks"]) == ("Hi", [{"kind": "regex", "pattern": "Hello|Hey"}])


@pytest.mark.parametrize("key", ["expectedTools", "turns"])
def test_json_that_is_nested_too_deeply_is_no_bug(imported, key):
    golden = {"input" if key != "turns" else "scenario": "p", "expected_output": "x", key: "[" * 100_000}
    found = imported("deepeval", "g.jsonl", lines(golden))
    assert f"{'turns' if key == 'turns' else 'expected tools'} that are no JSON" in found.left_out


def test_an_empty_list_is_no_value_of_a_golden(imported):
    found = imported("deepeval", "g.json", json.dumps([TALK | {"input": []}]))
    assert found.scenarios[0]["turns"] == ["Tickets?", "VIP."]
    empty = {"input": "Hi", "expected_output": [], "context": []}
    found = imported("deepeval", "g.json", json.dumps([empty]), expect="exact")
    assert found.scenarios == []
    assert list(found.left_out) == ["goldens without expected output, outcome or tools"]


def test_conversations_and_goldens_that_expect_nothing_are_left_out(imported):
    found = imported("deepeval", "g.jsonl", lines({"scenario": "angry", "turns": []}, {"input": "Hi"}))
    assert found.scenarios == []
    assert found.left_out["goldens without expected output, outcome or tools"] == (2, "g.jsonl:1")


@pytest.mark.parametrize(
    ("form", "options"), [("promptfoo", {"expect": "exact"}), ("deepeval", {"prompt": "q"})]
)
def test_an_option_that_a_format_has_no_use_for_is_refused(imported, form, options):
    with pytest.raises(ScenarioError, match=f"a file of {form}"):
        imported(form, "x.json", "{}", **options)


def test_a_golden_with_a_picture_is_left_out(imported):
    rows = [
        {"input": "Look at [DEEPEVAL:IMAGE:12]", "expected_output": "a cat"},
        {"input": "q", "expected_output": "a"},
    ]
    found = imported("deepeval", "g.json", json.dumps(rows))
    assert len(found.scenarios) == 1
    assert list(found.left_out) == ["inputs and outputs with pictures or other media"]

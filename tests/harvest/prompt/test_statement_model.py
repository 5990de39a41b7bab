"""Statements that a model rewrites, within the budget."""

import threading

import pytest
from hypothesis import given, settings
from support.completers import ScriptedCompleter
from support.voices import blocks_of, hostile, read_text, read_voices, usual

from pytest_tfgrpo.core.errors import BudgetError, ModelError, SettingError
from pytest_tfgrpo.harvest.prompt.statement_model import StatementModel, request_for
from pytest_tfgrpo.llm.protocol import Completion, Request

TESTS = ("- tests/test_a.py::test_x: assert 1 == 2",)


def failing(error: Exception) -> ScriptedCompleter:
    def answer(request: Request) -> str:
        raise error

    return ScriptedCompleter(answer)


def test_the_model_gets_text_and_tests_and_its_answer_is_the_text() -> None:
    completer = ScriptedCompleter(lambda request: " The task. \n")
    with StatementModel(completer) as model:
        assert model("what was written", TESTS) == "The task."
        assert model.cost_usd == 0.01
    (request,) = completer.requests
    assert "what was written" in request.messages[1].content
    assert TESTS[0] in request.messages[1].content


@settings(max_examples=15, deadline=None)
@given(hostile.map(lambda text: text.replace("\x1b", "")[:80]))
def test_what_was_written_and_the_tests_are_parted(text: str) -> None:
    (_, message) = request_for(text, (f"- {text}", "- other")).messages
    (written, tests) = (body for _, body in blocks_of(message.content))
    assert read_text(written) == usual(text)
    assert [read_text(row.removeprefix("- ")) for row in read_voices(tests)] == [usual(text), "other"]


def test_a_secret_in_what_the_model_says_is_taken_out_and_an_answer_that_was_cut_is_none() -> None:
    secret = "sk-proj-" + "a1B2c3D4" * 4
    with StatementModel(ScriptedCompleter(lambda request: f"Use {secret}.")) as model:
        assert model("text", TESTS) == "Use [redacted:api_key]."
    cut = ScriptedCompleter(lambda request: Completion(text="Use", finish="length", cost_usd=0.25))
    with StatementModel(cut) as model:
        assert model("text", TESTS) is None
        assert model.cost_usd == 0.25


def test_a_used_up_budget_ends_rewriting_without_another_call() -> None:
    completer = failing(BudgetError("the budget of $0.01 is used up"))
    with StatementModel(completer) as model:
        assert [model("text", TESTS) for _ in range(3)] == [None] * 3
        assert model.exhausted == "the budget of $0.01 is used up"
    assert len(completer.requests) == 1


def test_an_outage_leaves_the_text_and_its_cost_is_counted() -> None:
    with StatementModel(failing(ModelError("away", "server", cost_usd=0.5))) as model:
        assert model("text", TESTS) is None
        assert model.cost_usd == 0.5


def test_a_wrong_key_is_a_usage_error() -> None:
    with (
        StatementModel(failing(ModelError("no such key", "auth"))) as model,
        pytest.raises(SettingError, match="the model cannot write: no such key"),
    ):
        model("text", TESTS)


def test_an_answer_that_was_cut_off_is_not_used() -> None:
    completer = ScriptedCompleter(lambda request: Completion(text="Half a", finish="length"))
    with StatementModel(completer) as model:
        assert model("text", TESTS) is None


def test_threads_take_turns() -> None:
    completer = ScriptedCompleter(lambda request: "The task.")
    found: list[str | None] = []
    with StatementModel(completer) as model:
        threads = [threading.Thread(target=lambda: found.append(model("text", TESTS))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == ["The task."] * 4
    assert completer.most_in_flight == 1


@pytest.mark.parametrize("code", ["auth", "not_found", "rejected"])
def test_what_no_further_call_mends_is_a_usage_error_and_its_cost_counts(code: str) -> None:
    with StatementModel(failing(ModelError("no", code, cost_usd=0.5))) as model:
        with pytest.raises(SettingError, match="the model cannot write: no"):
            model("text", TESTS)
        assert (model.cost_usd, model.exhausted) == (0.5, "")


def test_the_connections_of_a_model_are_closed_in_the_end() -> None:
    closed = list[bool]()

    class Models:
        async def aclose(self) -> None:
            closed.append(True)

    with StatementModel(ScriptedCompleter(lambda request: "x"), Models()) as model:  # type: ignore[arg-type]
        assert model("text", TESTS) == "x"
        assert closed == []
    assert closed == [True]


def test_a_long_text_is_given_in_part_and_nothing_is_left_to_chance() -> None:
    (_, message), request = request_for("x" * 12_001, ()).messages, request_for("y" * 12_000, ())
    assert message.content.count("x") < 12_050
    assert "\n" in next(iter(blocks_of(message.content)))[1]
    assert next(iter(blocks_of(request.messages[1].content)))[1] == "y" * 12_000
    assert request.temperature == 0.0

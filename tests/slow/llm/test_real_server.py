"""The protocol, proved on a server that nobody here wrote: llama.cpp's, with a small real model."""

import asyncio
import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import llama
from support.model_clients import Ledger
from support.tools import run_pytest

from pytest_tfgrpo.core.errors import ModelError
from pytest_tfgrpo.core.sampled import why_no_ratio
from pytest_tfgrpo.llm.endpoints import Endpoint, ModelsConfig
from pytest_tfgrpo.llm.models import Models
from pytest_tfgrpo.llm.protocol import Completion, Message, Request, ToolSpec
from pytest_tfgrpo.runs.journal.journal_contents import load_run

ADD = ToolSpec(
    name="add",
    description="Add a and b.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}},
        "required": ["a", "b"],
    },
)
FORCED = {"tool_choice": "required"}
"""The server takes the name of a function for ``auto``."""
WRONG_KEY = "sk-tiny-wrong-1Zr8TnQ5wM3k"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[llama.Llama]:
    model = llama.require_llama()
    with llama.running(model, tmp_path_factory.mktemp("llama")) as running:
        yield running


def ask(server: llama.Llama, *requests: Request, **fields: Any) -> list[Completion]:
    """Return the completions of all requests, asked at once; `fields` are those of the endpoint."""
    return ask_with_purse(server, *requests, **fields)[0]


def ask_with_purse(
    server: llama.Llama, *requests: Request, key: str = llama.KEY, **fields: Any
) -> tuple[list[Completion], Ledger]:
    spending = Ledger()
    endpoint = Endpoint(
        **{"name": "here", "base_url": server.base_url, "api_key_env": "TINY_KEY", "retries": 0} | fields
    )
    config = ModelsConfig(endpoints={"here": endpoint})

    async def all_at_once() -> list[Completion]:
        models = Models(config, environ={"TINY_KEY": key}, spending=spending, max_tokens=64)
        try:
            completer = models.open(f"openai:{llama.MODEL}@here")
            return list(await asyncio.gather(*map(completer.complete, requests)))
        finally:
            await models.aclose()

    return asyncio.run(all_at_once()), spending


def request(user: str = "hi", system: str | None = None, **fields: Any) -> Request:
    messages = (Message(role="user", content=user),)
    if system is not None:
        messages = (Message(role="system", content=system), *messages)
    return Request(**{"messages": messages, "temperature": 1.0, "seed": 7, "max_tokens": 8} | fields)


def text_of(server: llama.Llama, asked: Request) -> str:
    return ask(server, asked)[0].text


def test_the_seed_decides_what_is_answered(server: llama.Llama) -> None:
    seeds = range(5)
    first = [text_of(server, request(seed=seed)) for seed in seeds]
    assert [text_of(server, request(seed=seed)) for seed in reversed(seeds)] == first[::-1]
    assert len(set(first)) > 3


def test_without_temperature_the_seed_does_not_matter(server: llama.Llama) -> None:
    cold = {text_of(server, request(seed=seed, temperature=0.0)) for seed in range(4)}
    hot = {text_of(server, request(seed=seed, temperature=2.0)) for seed in range(4)}
    assert len(cold) == 1
    assert len(hot) > 1


def test_an_answer_is_cut_at_the_most_tokens_asked_for(server: llama.Llama) -> None:
    for most in (1, 5):
        (answer,) = ask(server, request("Write a long story.", max_tokens=most))
        assert answer.usage is not None
        assert (answer.finish, answer.usage.completion) == ("length", most)
    asked = [request(seed=seed, max_tokens=64) for seed in range(3)]
    ended = ask(server, *asked, extra_body={"logit_bias": llama.END})
    assert "stop" in {answer.finish for answer in ended}


def test_usage_is_what_the_server_counted(server: llama.Llama) -> None:
    """A short word that is repeated is one token more each time."""
    asked = request("hi", max_tokens=1), request("hi" + " hi" * 20, max_tokens=1)
    short, long = ask(server, *asked)
    (told,) = ask(server, request("hi", system="hi" + " hi" * 30, max_tokens=1))
    (more,) = ask(server, request("hi", system="hi" + " hi" * 35, max_tokens=1))
    assert short.usage is not None
    assert long.usage is not None
    assert told.usage is not None
    assert more.usage is not None
    assert long.usage.prompt - short.usage.prompt == 20
    assert more.usage.prompt - told.usage.prompt == 5
    assert told.usage.prompt - short.usage.prompt > 30
    assert short.usage.completion == 1
    assert short.model == llama.MODEL


def test_what_was_used_is_settled(server: llama.Llama) -> None:
    answers, spending = ask_with_purse(server, *(request(seed=seed) for seed in range(3)), free=True)
    assert [answer.cost_usd for answer in answers] == [0.0] * 3
    totals = [answer.usage.total for answer in answers if answer.usage is not None]
    assert sorted(spending.settled) == sorted((0.0, total) for total in totals)
    assert spending.open == []


def test_a_system_message_is_heard(server: llama.Llama) -> None:
    plain = [text_of(server, request(seed=seed)) for seed in range(3)]
    told = [text_of(server, request(system="Speak in riddles.", seed=seed)) for seed in range(3)]
    assert plain != told


def test_many_calls_at_once_get_each_its_own_answer(server: llama.Llama) -> None:
    asked = [request(f"question {n}", seed=n) for n in range(8)]
    alone = [text_of(server, one) for one in asked]
    assert len(set(alone)) > 4
    assert [answer.text for answer in ask(server, *asked)] == alone


def test_a_conversation_that_is_too_long_is_rejected_with_the_servers_words(server: llama.Llama) -> None:
    with pytest.raises(ModelError, match=r"exceeds the available context size \(4096 tokens\)") as raised:
        ask(server, request("x " * 5000))
    assert raised.value.code == "rejected"


def test_a_wrong_key_is_an_error_that_shows_no_key(server: llama.Llama) -> None:
    with pytest.raises(ModelError, match="401") as raised:
        ask(server, request(), key=WRONG_KEY)
    assert raised.value.code == "auth"
    assert WRONG_KEY not in str(raised.value)


def test_a_schema_that_the_server_does_not_know_how_to_keep_is_asked_for_in_words(
    server: llama.Llama,
) -> None:
    """It answers 400 to a reference that leads nowhere."""
    answers = ask(server, *(request(seed=seed, schema={"$ref": "#/nowhere"}) for seed in range(2)))
    assert [answer.retries for answer in answers] == [0, 0]


def test_an_answer_keeps_to_its_schema(server: llama.Llama) -> None:
    properties = {"colour": {"enum": ["red", "blue"]}, "sure": {"type": "boolean"}}
    schema = {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }
    for answer in ask(server, *(request(seed=seed, schema=schema, max_tokens=40) for seed in range(3))):
        assert answer.finish == "stop"
        value = json.loads(answer.text)
        assert value["colour"] in ("red", "blue")
        assert value["sure"] in (True, False)
        assert set(value) == {"colour", "sure"}


def test_structured_output_is_json(server: llama.Llama) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    asked = [request('Write {"a": 1}', seed=seed, schema=schema, max_tokens=48) for seed in range(4)]
    finishes = set()
    for answer in ask(server, *asked, structured="json_object"):
        finishes.add(answer.finish)
        assert answer.text.lstrip().startswith("{")
        if answer.finish == "stop":
            assert isinstance(json.loads(answer.text), dict)
    assert "stop" in finishes


def test_a_tool_is_called_and_its_result_taken_back(server: llama.Llama) -> None:
    asked = request("Add 2 and true.", tools=(ADD,), max_tokens=48)
    (wanted,) = ask(server, asked, extra_body=FORCED)
    assert wanted.finish == "tool_calls"
    (call,) = wanted.tool_calls
    assert call.name == "add"
    assert set(json.loads(call.arguments)) == {"a", "b"}
    messages = (
        *asked.messages,
        Message(role="assistant", content="", tool_calls=(call,)),
        Message(role="tool", content="4", tool_call_id=call.id),
    )
    told = request(tools=(ADD,), messages=messages)
    (after,) = ask(server, told, extra_body={"tool_choice": "none"})
    assert after.finish in ("stop", "length")
    assert after.usage is not None
    assert wanted.usage is not None
    assert after.usage.prompt > wanted.usage.prompt + 10


RAW = {"logprobs": "raw", "free": True}
WHOLE = {"top_k": 0, "top_p": 1, "min_p": 0}
"""Cuts no token off."""
PROCESSED = {"logprobs": "processed", "free": True, "extra_body": {"post_sampling_probs": True, **WHOLE}}


def first_tokens(
    server: llama.Llama, temperature: float, seeds: range, **fields: Any
) -> dict[str, set[float]]:
    """Return the log-probabilities that the server gives for the first token of its answers."""
    asked = [request(seed=n, temperature=temperature, max_tokens=1, logprobs=True) for n in seeds]
    values: dict[str, set[float]] = {}
    for answer in ask(server, *asked, **fields):
        assert answer.sampled is not None
        assert (answer.sampled.kind, answer.sampled.temperature) == (fields["logprobs"], temperature)
        assert answer.sampled.logprobs is not None
        (value,) = answer.sampled.logprobs
        values.setdefault(answer.text, set()).add(round(value, 5))
    return values


def test_log_probabilities_are_those_before_temperature_and_truncation(server: llama.Llama) -> None:
    """The same first token has the same value at every temperature, and no value leaves out the others."""
    values: dict[str, set[float]] = {}
    for heat in (0.5, 1.0, 2.0):
        for text, found in first_tokens(server, heat, range(4), **RAW).items():
            values.setdefault(text, set()).update(found)
    assert len(values) > 2
    assert {len(found) for found in values.values()} == {1}
    assert sum(math.exp(value) for found in values.values() for value in found) < 1.0


def test_processed_log_probabilities_are_those_after_temperature(server: llama.Llama) -> None:
    """Two tokens are as far apart as before temperature, divided by it."""
    heat, seeds = 1.6, range(6)
    raw = first_tokens(server, heat, seeds, **RAW | {"extra_body": WHOLE})
    processed = first_tokens(server, heat, seeds, **PROCESSED)
    assert raw.keys() == processed.keys()
    assert len(raw) > 2
    shifts = [after - before / heat for text in raw for before in raw[text] for after in processed[text]]
    assert max(shifts) - min(shifts) < 1e-3
    assert max(map(abs, shifts)) > 0.1


def test_a_list_shorter_than_what_was_sampled_is_null_and_no_other(server: llama.Llama) -> None:
    """The server counts the tokens that make up one rare character, but lists their last alone."""
    asked = [request(seed=seed, max_tokens=12, logprobs=True) for seed in range(2)]
    held = [
        RAW | {"extra_body": {"grammar": f"root ::= [{letters}]+"}}
        for letters in ("a-z ", "\U0001f34e\U0001f34f")
    ]
    answers = [answer for fields in held for answer in ask(server, *asked, **fields)]
    reasons = set()
    for answer in answers:
        assert answer.sampled is not None
        assert answer.usage is not None
        reasons.add(answer.sampled.reason)
        if answer.sampled.logprobs is not None:
            assert answer.sampled.token_ids is not None
            assert len(answer.sampled.logprobs) == len(answer.sampled.token_ids) == answer.usage.completion
            assert -50 < min(answer.sampled.logprobs) <= max(answer.sampled.logprobs) <= 0
    assert reasons == {"", "short"}
    silent = [replace(one, logprobs=False) for one in asked]
    plain = [answer for fields in held for answer in ask(server, *silent, **fields)]
    assert [answer.text for answer in plain] == [answer.text for answer in answers]
    assert {answer.sampled for answer in plain} == {None}


def test_a_tool_call_has_the_log_probabilities_of_its_tokens(server: llama.Llama) -> None:
    asked = request("Add 2 and true.", tools=(ADD,), max_tokens=48, logprobs=True)
    (answer,) = ask(server, asked, **RAW | {"extra_body": FORCED})
    assert answer.finish == "tool_calls"
    assert answer.sampled is not None
    assert answer.usage is not None
    assert answer.sampled.logprobs is not None, answer.sampled.reason
    assert len(answer.sampled.logprobs) == answer.usage.completion > 10


SCENARIO = {"domain": "letters", "checks": [{"kind": "regex", "pattern": "[A-Z]"}]}
MODELS = """
endpoints:
  here: {{base_url: "{url}", api_key_env: TINY_KEY, free: true, structured: json_object, {more}}}
  raw: {{base_url: "{url}", api_key_env: TINY_KEY, free: true, logprobs: raw, {more}}}
"""


SHORT = f"timeout_s: 250, extra_body: {json.dumps({'logit_bias': llama.END})}"


class Project:
    """A project whose agent is the model."""

    def __init__(self, root: Path, server: llama.Llama) -> None:
        self.root = root
        self.output = ""
        (root / "models.yaml").write_text(MODELS.format(url=server.base_url, more=SHORT))
        (root / "pytest.ini").write_text("[pytest]\ntfgrpo_models = models.yaml\n")

    def learn(self, task_id: str, *settings: str, each: int) -> dict[str, Any]:
        """Run a suite with `each` scenarios per split; return its report, whatever its gate says."""
        scenarios = [
            {**SCENARIO, "id": f"{split}-{n}", "split": split, "prompt": f"hi {split}" + "!" * n}
            for split in ("train", "eval")
            for n in range(each)
        ]
        (self.root / "letters.scenario.json").write_text(json.dumps(scenarios))
        warm = ["--tfgrpo-temperature-train=1.5", "--tfgrpo-temperature-eval=1.2", "--tfgrpo-seed=1"]
        warm.append("--tfgrpo-baseline-sweep=early")  # else a run without lessons shares the sweep's answers
        done = run_pytest(self.root, "--tfgrpo", f"--tfgrpo-task-id={task_id}", *warm, *settings)
        self.output = done.stdout + done.stderr
        assert done.returncode in (0, 1), self.output
        (report,) = (self.root / "out" / task_id / "runs").glob("*/report.json")
        return json.loads(report.read_text())  # type: ignore[no-any-return]

    def written(self) -> str:
        """Return all that is in the project's files."""
        return "".join(p.read_text(errors="replace") for p in self.root.rglob("*") if p.is_file())


@pytest.fixture
def project(tmp_path: Path, server: llama.Llama, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("TINY_KEY", llama.KEY)
    return Project(tmp_path, server)


def test_a_suite_runs_with_the_model_and_twice_gives_the_same(project: Project) -> None:
    settings = [
        f"--tfgrpo-actor=openai:{llama.MODEL}@here",
        "--tfgrpo-group-size=3",
        "--tfgrpo-eval-rollouts=3",
        "--tfgrpo-epochs=2",
    ]
    first, second = (project.learn(n, *settings, "--tfgrpo-max-tokens=12", each=2) for n in ("a", "b"))
    assert [row["rollouts"] for row in first["epochs"]] == [6, 6, 6]
    for row, other in zip(first["epochs"], second["epochs"], strict=True):
        assert row["errors"] == 0
        assert row["tokens"]["sum"] > 10 * row["rollouts"]
        assert row["cost_usd"]["sum"] == 0
        assert row["gt_score"] == other["gt_score"]
        assert row["tokens"] == other["tokens"]
    assert sum(row["informative_groups"] for row in first["epochs"]) > 0
    assert re.search(r"\d rollouts? cut off, scored 0: ", project.output)
    assert llama.KEY not in project.written() + project.output


def test_a_run_keeps_the_log_probabilities_and_is_otherwise_the_same(project: Project) -> None:
    settings = ["--tfgrpo-group-size=3", "--tfgrpo-max-tokens=12", "--tfgrpo-epochs=2"]
    settings.append("--tfgrpo-eval-rollouts=3")
    plain, told = (
        project.learn(name, f"--tfgrpo-actor=openai:{llama.MODEL}@{name}", *settings, each=1)
        for name in ("here", "raw")
    )
    assert [row["tokens"] for row in told["epochs"]] == [row["tokens"] for row in plain["epochs"]]
    runs = {name: next((project.root / "out" / name / "runs").iterdir()) for name in ("here", "raw")}
    assert b'"sampled"' not in (runs["here"] / "journal.jsonl").read_bytes()
    kept = 0
    for result in load_run(runs["raw"]).phases:
        for rollout in (rollout for group in result.groups for rollout in group.rollouts):
            (frame,) = rollout.frames
            assert frame.sampled is not None
            assert frame.sampled.temperature == rollout.temperature
            assert frame.usage is not None
            if frame.sampled.logprobs is None:
                assert frame.sampled.reason == ("short" if frame.usage.completion else "missing_logprobs")
            else:
                assert len(frame.sampled.logprobs) == frame.usage.completion
                assert why_no_ratio(frame.sampled) == "raw_at_temperature"
                kept += 1
    assert kept > 3


def test_the_model_as_teacher_is_asked_and_its_nonsense_dropped(project: Project) -> None:
    settings = [f"--tfgrpo-actor=openai:{llama.MODEL}@here", "--tfgrpo-optimizer=llm", "--tfgrpo-epochs=2"]
    report = project.learn("a", *settings, "--tfgrpo-group-size=8", "--tfgrpo-max-tokens=12", each=1)
    assert [row["errors"] for row in report["epochs"]] == [0, 0, 0]
    assert report["epochs"][-1]["experiences"]["in_force"] == 0
    assert "failed in learning: malformed" in project.output
    assert llama.KEY not in project.written() + project.output

"""What makes two measurements comparable: equal temperatures and seeds, and keys of all that matters."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_scenario
from support.completers import ScriptedCompleter
from support.jobs import ScriptedActor, make_job, run_job, suite, three_or_not
from support.model_clients import Ledger
from support.sweeps import SETTINGS, evenly, make_run

from pytest_tfgrpo.core.records import Mode, Phase
from pytest_tfgrpo.core.scenarios import (
    Attachment,
    Check,
    Criterion,
    Prompt,
    Scenario,
    WorkspaceArchive,
    task_stamp,
)
from pytest_tfgrpo.gate.verdict import judge
from pytest_tfgrpo.llm.endpoints import Endpoint, ModelsConfig
from pytest_tfgrpo.llm.fingerprint import fingerprint
from pytest_tfgrpo.llm.models import Models
from pytest_tfgrpo.llm.protocol import Image, Message, Request, ToolCall, ToolSpec
from pytest_tfgrpo.metrics.comparison import Sweeps
from pytest_tfgrpo.recording.entries import Participant, actor_stamp, rollout_fingerprint
from pytest_tfgrpo.report.value import build
from pytest_tfgrpo.runs.schedule import dev_phase, outline, plan
from pytest_tfgrpo.runs.seeds import rollout_seed

# temperatures and seeds


def planned(**changes: Any) -> list[Phase]:
    settings = {**SETTINGS, "eval_rollouts": 3, **changes}
    scenarios = [*suite(), *(make_scenario(f"dev{n}", split="dev", prompt=f"d{n}") for n in range(20))]
    return plan(outline(settings, learning=True, sweep_rollouts=3), scenarios, settings)


@given(
    st.floats(0, 2),
    st.floats(0, 2),
    st.integers(2, 5),
    st.sampled_from(["last_epoch", "separate"]),
)
def test_all_sweeps_of_a_run_have_one_temperature_and_one_number_of_rollouts(
    train: float, sweep: float, epochs: int, mode: str
) -> None:
    changes = {"temperature_train": train, "temperature_eval": sweep, "epochs": epochs, "eval_mode": mode}
    settings = {**SETTINGS, "eval_rollouts": 3, **changes}
    phases = planned(**changes)
    sweeps = [phase for phase in phases if phase.mode != "train"]
    dev = [dev_phase(phase, phase.dev, settings) for phase in phases if phase.mode == "train"]
    assert {phase.mode for phase in sweeps} == {"baseline", "eval"}
    assert {(phase.temperature, phase.rollouts, phase.seed_phase) for phase in sweeps} == {
        (sweep, 3, "sweep")
    }
    assert {(p.mode, p.temperature, p.rollouts, p.seed_phase) for p in dev} == {("dev", sweep, 6, "sweep")}
    assert {phase.temperature for phase in phases if phase.mode == "train"} == {train}


@given(st.integers(0, 2**32), st.integers(0, 9))
def test_the_seeds_of_sweeps_pair_and_are_never_those_of_training(seed: int, index: int) -> None:
    scenario = make_scenario()
    seeds = {phase.label: rollout_seed(seed, scenario, phase, index) for phase in planned()}
    assert seeds["baseline"] == seeds["epoch3-eval"]
    assert len(set(seeds.values())) == len(seeds) - 1


def test_what_a_run_asked_in_its_sweeps_was_asked_at_one_temperature(tmp_path: Path) -> None:
    actor = ScriptedActor(three_or_not)
    run, _ = run_job(make_job(actor, tmp_path, temperature_train=1.1, temperature_eval=0.2))
    asked: dict[Mode, set[float]] = {}
    for group in (group for result in run.phases for group in (*result.groups, *result.dev)):
        asked.setdefault(group.mode, set()).update(rollout.temperature for rollout in group.rollouts)
    assert asked == {"baseline": {0.2}, "train": {1.1}, "eval": {0.2}}


def test_training_groups_never_enter_a_comparison_of_sweeps() -> None:
    sweeps = evenly(12, [1, 0]), evenly(12, [1, 1])
    without, trained = make_run(*sweeps), make_run(*sweeps, {"t": [1, 0], "s0": [0, 0]})
    trained = replace(trained, scenarios=without.scenarios + trained.scenarios[-1:])
    one, two = (build(run, judge(run, baseline=None, settings=SETTINGS)) for run in (without, trained))
    for key in ("gain", "regressions", "flaky", "noise"):
        assert one[key] == two[key]
    rules = [{r["name"]: r["figures"] for r in report["gate"]["results"]} for report in (one, two)]
    assert rules[0]["gain"] == rules[1]["gain"]


def test_the_end_and_the_start_of_a_run_are_sweeps() -> None:
    only_trained = make_run(train={"t": [1, 0]})
    assert Sweeps(only_trained).before is None
    assert Sweeps(only_trained).after is None


# keys


IMAGE = Image(media_type="image/png", data=b"1")
CALL = ToolCall(id="1", name="f", arguments="{}")
SPEC = ToolSpec(name="f", description="", parameters={})
MESSAGE = Message(role="user", content="Why?", images=(IMAGE,), tool_calls=(CALL,), tool_call_id="1")
REQUEST = Request(
    messages=(MESSAGE,), temperature=0.5, seed=1, max_tokens=5, tools=(SPEC,), schema={}, timeout_s=9
)
OTHER: dict[str, Any] = {
    "messages": (MESSAGE, MESSAGE),
    "temperature": 0.6,
    "seed": 2,
    "max_tokens": 6,
    "tools": (replace(SPEC, parameters={"type": "object"}),),
    "schema": {"type": "object"},
}
OTHER_MESSAGE: dict[str, Any] = {
    "role": "system",
    "content": "How?",
    "images": (replace(IMAGE, data=b"2"),),
    "tool_calls": (replace(CALL, arguments="[]"),),
    "tool_call_id": "2",
}


def test_a_models_answer_is_found_by_every_part_of_the_request_and_the_model() -> None:
    assert {f.name for f in fields(Request)} - OTHER.keys() == {"timeout_s", "logprobs"}
    assert {f.name for f in fields(Message)} == OTHER_MESSAGE.keys()
    requests = [REQUEST, *(replace(REQUEST, **{name: value}) for name, value in OTHER.items())]
    requests += [replace(REQUEST, messages=(replace(MESSAGE, **{k: v}),)) for k, v in OTHER_MESSAGE.items()]
    model, named = ScriptedCompleter(lambda _: ""), ScriptedCompleter(lambda _: "", name="openai:other")
    elsewhere = ScriptedCompleter(lambda _: "")
    elsewhere.identity = {**model.identity, "base_url": "http://other.example"}
    stamps = [fingerprint(model, request) for request in requests]
    stamps += [fingerprint(named, REQUEST), fingerprint(elsewhere, REQUEST)]
    assert len(set(stamps)) == len(stamps)
    assert fingerprint(model, replace(REQUEST, timeout_s=1, logprobs=True)) == stamps[0]


def identity_of_a_model() -> set[str]:
    endpoint = Endpoint(name="fake", base_url="http://127.0.0.1:1/v1", thoughts=False)
    config = ModelsConfig(endpoints={"fake": endpoint})
    models = Models(config, environ={}, spending=Ledger(), max_tokens=1000)
    return set(models.open("openai:m@fake").identity)


def test_a_models_identity_has_all_of_its_endpoint_that_shapes_an_answer() -> None:
    transport = {
        "name", "api_key_env", "headers_env", "timeout_s", "retries", "concurrency", "max_tokens_field",
        "batch", "hedge_after_s", "free", "insecure", "response_max_bytes", "logprobs",
    }  # fmt: skip
    identity = identity_of_a_model()
    assert {f.name for f in fields(Endpoint)} - transport <= identity
    assert "model" in identity


def test_a_rollout_is_found_by_actor_scenario_prompt_temperature_and_seed() -> None:
    actor = Participant(name="python:a:b", identity={"sha256": "1"})
    others = [replace(actor, name="python:a:c"), replace(actor, identity={"sha256": "2"})]
    asked = [actor_stamp(actor), "s", "p", 0.3, 5]
    changed = [asked, [actor_stamp(others[0]), *asked[1:]], [actor_stamp(others[1]), *asked[1:]]]
    for place, value in ((1, "t"), (2, "q"), (3, 0.7), (4, 6)):
        changed.append([*asked[:place], value, *asked[place + 1 :]])
    stamps = {rollout_fingerprint(*each) for each in changed}  # type: ignore[arg-type]
    assert len(stamps) == len(changed)


def test_a_prompt_is_known_by_both_its_parts() -> None:
    prompts = [Prompt(system="a", user="b"), Prompt(system="a", user="c"), Prompt(system="c", user="b")]
    prompts += [Prompt(system="ab", user=""), Prompt(system="", user="ab")]
    assert len({prompt.stamp for prompt in prompts}) == len(prompts)


FILES = (Attachment(name="a", path=Path("a"), sha256="1"),)
CHECK, CRITERION = Check(kind="exact", params={"value": "3"}), Criterion(text="polite")
ARCHIVE = WorkspaceArchive(archive="a", path=Path("a"), sha256="1")


@pytest.mark.parametrize(
    "change",
    [
        {"prompt": "How?"},
        {"input": {"x": 2}},
        {"attachments": (replace(FILES[0], sha256="2"),)},
        {"tools": ("g",)},
        {"checks": (replace(CHECK, params={"value": "4"}),)},
        {"checks": (replace(CHECK, weight=2.0),)},
        {"rubric": (replace(CRITERION, weight=2.0),)},
        {"truth": "judge"},
        {"workspace": replace(ARCHIVE, sha256="2")},
        {"workspace": None},
        {"environment": "other"},
        {"environment": None},
    ],
)
def test_a_task_is_known_by_what_is_asked_and_how_it_is_judged(change: dict[str, Any]) -> None:
    asked = Scenario(
        id="a",
        domain="d",
        split="eval",
        prompt="Why?",
        input={"x": 1},
        attachments=FILES,
        tools=("f",),
        checks=(CHECK,),
        rubric=(CRITERION,),
        workspace=ARCHIVE,
        environment="one",
    )
    assert task_stamp(asked) != task_stamp(replace(asked, **change))

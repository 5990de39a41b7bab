"""The suites of `benchmarks/real_suites.py`."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from support import benchmark
from support.reviews import passes

from pytest_tfgrpo.core.scenarios import Prompt, PromptPack, Scenario
from pytest_tfgrpo.core.texts.words import content
from pytest_tfgrpo.learning.library.library import empty
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.collection import collect
from pytest_tfgrpo.suite.contamination.inspection import inspect
from pytest_tfgrpo.suite.packs import load_packs, pack_folders, write_pack_stamp

NAMES = ("form", "convention", "content")


@pytest.fixture(scope="module")
def suites() -> ModuleType:
    return benchmark("real_suites")


def scenarios_of(suites: ModuleType, name: str, tmp_path: Path) -> list[Scenario]:
    return collect(tmp_path, list(suites.SUITES[name]().scenarios), KINDS)


def packs_of(suites: ModuleType, folder: Path) -> dict[str, PromptPack]:
    for name, text in suites.packs().items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    for pack in pack_folders(folder):
        write_pack_stamp(pack)
    return load_packs(folder)


@pytest.mark.parametrize("name", NAMES)
def test_each_family_has_tasks_of_every_split(suites: ModuleType, name: str, tmp_path: Path) -> None:
    splits = defaultdict(list)
    for scenario in scenarios_of(suites, name, tmp_path):
        splits[scenario.domain, scenario.family].append(scenario.split)
    assert len(splits) >= 30
    assert all(sorted(found) == ["dev", "eval", "eval", "train", "train"] for found in splits.values())


@pytest.mark.parametrize("name", NAMES)
def test_splits_share_no_task_and_no_answer_leaks(suites: ModuleType, name: str, tmp_path: Path) -> None:
    scenarios = scenarios_of(suites, name, tmp_path)
    assert inspect(scenarios, kinds=KINDS, packs=packs_of(suites, tmp_path), library=empty()) == []


@pytest.mark.parametrize("name", NAMES)
def test_lessons_by_hand_fit_a_library(suites: ModuleType, name: str) -> None:
    suite = suites.SUITES[name]()
    prompts = [scenario["prompt"] for scenario in suite.scenarios if scenario["split"] == "eval"]
    for domain, text in suite.hand_written:
        assert len(text.split()) <= 32
        assert not any(prompt in text for prompt in prompts)
        assert domain in {scenario["domain"] for scenario in suite.scenarios}


@pytest.mark.parametrize("name", ["convention", "content"])
def test_a_lesson_by_hand_shares_a_word_with_each_task_of_its_family(suites: ModuleType, name: str) -> None:
    suite = suites.SUITES[name]()
    for scenario in suite.scenarios:
        own = [text for domain, text in suite.hand_written if domain == scenario["domain"]]
        fits = [text for text in own if content(scenario["family"]) <= content(text)]
        assert len(fits) == 1
        assert content(scenario["family"]) <= content(scenario["prompt"])


def test_each_queue_takes_half_of_the_kinds_of_a_desk(suites: ModuleType) -> None:
    taken = defaultdict(list)
    for (desk, _), queue in suites.rules().items():
        taken[desk].append(queue)
    assert all(found.count(queue) == 4 for found in taken.values() for queue in suites.QUEUES)
    assert suites.rules() == suites.rules()


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Leeds", True),
        ("The city is leeds.", True),
        ("The city is Leeds.\n", True),
        ("The city is Leeds. It is large, too.", False),
        ("The city is\nLeeds.", False),
        ("The city is Turin.", False),
    ],
)
def test_an_answer_of_form_has_the_word_and_little_more(
    suites: ModuleType, tmp_path: Path, answer: str, right: bool
) -> None:
    task = next(task for task in scenarios_of(suites, "form", tmp_path) if task.id == "orders-city-1")
    assert passes(task.checks, answer) is right


@pytest.mark.parametrize(
    ("text", "tools"),
    [("use west", ["west"]), ("Queue: east, not west.", ["east"]), ("I cannot say.", [])],
)
def test_a_ticket_is_put_into_the_queue_that_the_model_names_first(
    monkeypatch: pytest.MonkeyPatch, text: str, tools: list[str]
) -> None:
    asked = []
    dispatch = benchmark("real_dispatch")

    def reply(url: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        asked.append(body)
        message = {"message": {"content": text}, "finish_reason": "stop"}
        return {"choices": [message], "usage": {"prompt_tokens": 40, "completion_tokens": 2}}

    monkeypatch.setattr(dispatch, "_post", reply)
    agent = dispatch.dispatcher("http://here/v1", "tiny", ("east", "west"), 12, bound=True)
    prompt = Prompt(system="", user="You route tickets.\n\nTicket: a lamp.")
    made = asyncio.run(agent(SimpleNamespace(prompt=prompt, temperature=0.3, seed=2**40 + 5)))
    assert [frame["name"] for frame in made["frames"] if frame["kind"] == "tool"] == tools
    assert made["frames"][0]["tokens"] == 42
    assert asked[0]["messages"] == [{"role": "user", "content": "You route tickets.\n\nTicket: a lamp."}]
    assert asked[0]["grammar"] == 'root ::= "use east" | "use west"'


def test_packs_serve_all_domains(suites: ModuleType, tmp_path: Path) -> None:
    served = packs_of(suites, tmp_path)
    wanted = {task["domain"] for make in suites.SUITES.values() for task in make().scenarios}
    assert served.keys() == wanted
    assert all(pack.experience_slots == suites.SLOTS for pack in served.values())

"""The shipped fixtures and the held-out suite: answers are right, tools find them, lessons help."""

import itertools
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support import ROOT, benchmark

from pytest_tfgrpo.actors.offline.task_view import first_value, open_brief
from pytest_tfgrpo.actors.offline.tools.registry import BY_NAME
from pytest_tfgrpo.actors.offline.values import kind_of, render
from pytest_tfgrpo.core.records import Frame
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.sandbox.workspace import Workspace
from pytest_tfgrpo.scoring.checks.protocol import CheckContext
from pytest_tfgrpo.scoring.checks.registry import KINDS, evaluate
from pytest_tfgrpo.suite.scenario_files import load_scenarios

SUITES = {"fixtures": "MAIN", "benchmarks/held-out/fixtures": "HELD_OUT"}


@pytest.fixture(scope="module")
def sources() -> ModuleType:
    """Import the sources of the fixtures, which compute every answer in plain Python."""
    return benchmark("make_fixtures")


def load(folder: str) -> list[Scenario]:
    base = ROOT / folder
    files = sorted(path for path in base.iterdir() if path.is_file())
    return [s for path in files for s in load_scenarios(path, root=ROOT, kinds=KINDS)]


def test_every_fixture_file_is_what_its_source_computes(sources: ModuleType) -> None:
    assert sources.stale() == []


def test_the_ground_truth_uses_none_of_the_agents_tools(sources: ModuleType) -> None:
    texts = [p.read_text("utf-8") for p in (ROOT / "benchmarks/fixture_source").glob("*.py")]
    assert texts
    assert not [text for text in texts if "import pytest_tfgrpo" in text or "from pytest_tfgrpo" in text]


@pytest.mark.parametrize("folder", SUITES)
def test_the_intended_tools_solve_every_scenario(folder: str, sources: ModuleType, tmp_path: Path) -> None:
    chains = {(f.domain, f.name): f.chain for f in getattr(sources, SUITES[folder])}
    for scenario in load(folder):
        workspace = Workspace(tmp_path / scenario.id, scenario.attachments)
        answer, frames = apply(chains[scenario.domain, scenario.family or ""], scenario, workspace)
        context = CheckContext(answer=answer, frames=frames, workspace=workspace, task=scenario.task())
        found = evaluate(scenario.checks, context, KINDS)
        assert all(check.passed for check in found), (scenario.id, answer, found)


def apply(chain: tuple[str, ...], scenario: Scenario, workspace: Workspace) -> tuple[str, tuple[Frame, ...]]:
    """Call the tools of `chain` that take the kind of value at hand."""
    brief = open_brief(scenario.task(), workspace)
    value: Any = first_value(scenario.task(), brief)
    frames = []
    for name in chain:
        if kind_of(value) in BY_NAME[name].takes:
            arguments, value = BY_NAME[name].call(value, brief)
            frames.append(Frame(kind="tool", name=name, input=dict(arguments)))
    return render(value), tuple(frames)


def test_the_suites_are_as_large_and_as_mixed_as_they_claim() -> None:
    for folder, sizes, domains in (
        ("fixtures", {"train": 96, "eval": 66, "dev": 42}, 6),
        ("benchmarks/held-out/fixtures", {"train": 60, "eval": 34}, 5),
    ):
        scenarios = load(folder)
        assert Counter(s.split for s in scenarios) == sizes
        assert len({s.domain for s in scenarios}) == domains
        realistic = Counter(s.domain for s in scenarios if "realistic" in s.tags)
        assert min(realistic[s.domain] for s in scenarios) >= 2


@pytest.mark.parametrize("folder", SUITES)
def test_no_two_splits_share_a_wording_or_an_input(folder: str, sources: ModuleType) -> None:
    for family in getattr(sources, SUITES[folder]):
        wordings = [{case.wording for case in split} for split in (family.train, family.dev, family.eval)]
        data = [[dict(case.data) for case in split] for split in (family.train, family.dev, family.eval)]
        for one, other in itertools.combinations(range(3), 2):
            assert not wordings[one] & wordings[other], family.name
            assert not [found for found in data[one] if found in data[other]], family.name


def families_by_split(folder: str) -> dict[str, set[tuple[str, str | None]]]:
    found: dict[str, set[tuple[str, str | None]]] = {split: set() for split in ("train", "dev", "eval")}
    for scenario in load(folder):
        found[scenario.split].add((scenario.domain, scenario.family))
    return found


def test_every_trained_family_of_the_shipped_suite_has_dev_and_eval_scenarios() -> None:
    families = families_by_split("fixtures")
    assert families["dev"] == families["train"] < families["eval"]


@pytest.mark.parametrize(
    ("folder", "count", "each"), [("fixtures", 12, 2), ("benchmarks/held-out/fixtures", 5, 1)]
)
def test_every_domain_has_eval_families_that_training_never_sees(folder: str, count: int, each: int) -> None:
    families = families_by_split(folder)
    unseen = families["eval"] - families["train"]
    assert len(unseen) == count
    assert set(Counter(domain for domain, _ in unseen).values()) == {each}
    assert {domain for domain, _ in unseen} == {domain for domain, _ in families["train"]}


def test_the_suites_share_no_family() -> None:
    main, held_out = ({(s.domain, s.family) for s in load(folder)} for folder in SUITES)
    assert not main & held_out


Gains = dict[str, tuple[float, float, float]]


@pytest.fixture(scope="module")
def gains() -> Gains:
    """Return for each wording of the lessons the gain over all, trained and untrained families."""
    learning = benchmark("learning_gain")
    wordings = {name: learning.WORDINGS[name] for name in ("in names", "in words", "negated", "tools alone")}
    found = learning.measure(learning.Bench(ROOT / "fixtures"), seed=0, wordings=wordings, swaps=1)
    assert 0.15 <= found.final.before <= 0.5
    assert found.final.difference.low > 0
    return dict(found.rows())


def test_a_run_gains_and_the_gain_vanishes_without_its_own_lessons(gains: Gains) -> None:
    assert gains["as learned"][1] >= 0.5
    assert gains["removed"] == (0, 0, 0)
    assert abs(gains["other domain"][1]) <= 0.01


def test_families_near_the_trained_ones_lose_at_most_a_hundredth(gains: Gains) -> None:
    assert gains["as learned"][2] >= -0.01


def test_lessons_work_in_words_as_well_as_by_identifiers_and_harm_when_negated(gains: Gains) -> None:
    assert gains["in names"][1] >= gains["as learned"][1] - 0.05
    assert gains["in words"][1] >= gains["as learned"][1] - 0.05
    assert gains["negated"][1] < -0.1
    assert abs(gains["tools alone"][0]) <= 0.01

"""The shipped fixtures and the held-out suite: answers are right, tools find them, lessons help."""

import itertools
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support import ROOT, benchmark

from pytest_tfgrpo.core.records import Frame
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.harness.actors.offline.task_view import first_value, open_brief
from pytest_tfgrpo.harness.actors.offline.tools.registry import BY_NAME
from pytest_tfgrpo.harness.actors.offline.values import kind_of, render
from pytest_tfgrpo.harness.sandbox.workspace import Workspace
from pytest_tfgrpo.harness.scoring.checks.protocol import CheckContext
from pytest_tfgrpo.harness.scoring.checks.registry import KINDS, evaluate
from pytest_tfgrpo.harness.suite.scenario_files import load_scenarios

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
        ("fixtures", {"train": 96, "eval": 42, "dev": 42}, 6),
        ("benchmarks/held-out/fixtures", {"train": 60, "eval": 24}, 5),
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


def test_every_family_of_the_shipped_suite_has_a_dev_scenario() -> None:
    families = {split: set() for split in ("train", "dev", "eval")}
    for scenario in load("fixtures"):
        families[scenario.split].add((scenario.domain, scenario.family))
    assert families["dev"] == families["train"] == families["eval"]


def test_the_suites_share_no_family() -> None:
    main, held_out = ({(s.domain, s.family) for s in load(folder)} for folder in SUITES)
    assert not main & held_out


def test_a_run_gains_and_the_gain_vanishes_without_its_own_experiences() -> None:
    gains = benchmark("learning_gain")
    final, removed, swapped = gains.measure(gains.Bench(ROOT / "fixtures"), seed=0)
    assert 0.15 <= final.before <= 0.5
    assert final.difference.mean >= 0.2
    assert final.difference.low > 0
    assert final.after >= 0.85
    assert abs(removed) <= 0.03
    assert max(map(abs, swapped)) <= 0.03
    assert len(swapped) == 5

import random
import re
from collections.abc import Iterator
from dataclasses import replace

from support import ROOT

from pytest_tfgrpo.core.files import SCENARIO_SUFFIXES
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.contamination.answers import expected_answers
from pytest_tfgrpo.suite.contamination.findings import Finding
from pytest_tfgrpo.suite.contamination.overlap import overlaps
from pytest_tfgrpo.suite.scenario_files import load_scenarios


def found(*scenarios: Scenario) -> list[Finding]:
    return overlaps(scenarios, lambda scenario: expected_answers(KINDS, scenario))


def shipped() -> list[Scenario]:
    files = sorted(f for f in (ROOT / "fixtures").iterdir() if f.name.endswith(tuple(SCENARIO_SUFFIXES)))
    return [s for file in files for s in load_scenarios(file, root=ROOT, kinds=KINDS)]


def edits(prompt: str, rng: random.Random) -> Iterator[tuple[str, str]]:
    words = prompt.split()
    spot = rng.randrange(len(words))
    yield "name", " ".join([*words[:spot], "Zebedee", *words[spot + 1 :]])
    yield "added", f"{prompt} Please take your time and answer with care."
    yield "typography", f"  {prompt.upper()}  "
    yield "number", re.sub(r"\d+", lambda found: str(int(found[0]) + 3), prompt, count=1)


def test_on_the_shipped_suite_there_is_no_alarm_and_copies_of_its_tasks_are_found() -> None:
    suite, rng = shipped(), random.Random(0)
    assert not found(*suite)
    recall: dict[str, list[bool]] = {}
    for scenario in (s for s in suite if s.split == "eval" and not s.attachments):
        for kind, prompt in edits(scenario.prompt, rng):
            if prompt != scenario.prompt and (kind != "name" or len(prompt.split()) >= 14):
                copy = replace(scenario, id="copy", split="train", prompt=prompt)
                recall.setdefault(kind, []).append(bool(found(*suite, copy)))
    share = {kind: sum(hits) / len(hits) for kind, hits in recall.items()}
    assert share["typography"] == 1.0
    assert share["number"] == 0.0
    assert share["added"] > 0.75
    assert share["name"] > 0.75

"""Which groups of an evidence file a run learns from."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.builders import make_pack, make_rollout, make_scenario
from support.evidence import GROUPS, group, write

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.evidence import EvidenceAttempt, EvidenceGroup, EvidenceStep
from pytest_tfgrpo.core.records import Frame
from pytest_tfgrpo.core.scenarios import Check, PromptPack, Scenario, stamped
from pytest_tfgrpo.learning.library.library import empty
from pytest_tfgrpo.runs.evidence_epoch import GivenEpoch, evidence_epoch
from pytest_tfgrpo.scoring.checks.registry import KINDS

SECRET = "the heron sleeps beneath nine lanterns"


def eval_task(prompt: str, domain: str = "general", split: Any = "eval", answer: str = "3") -> Scenario:
    check = Check(kind="exact", params={"value": answer})
    return stamped(make_scenario("known", domain=domain, split=split, prompt=prompt, checks=(check,)))


def epoch(
    root: Path,
    groups: Sequence[EvidenceGroup],
    suite: Sequence[Scenario],
    packs: Sequence[PromptPack] = (),
    **settings: Any,
) -> GivenEpoch:
    write(root / "evidence.jsonl", groups)
    return evidence_epoch(
        suite,
        root=root,
        settings={"evidence": "evidence.jsonl", "seed": 0, "sample_size": 100} | settings,
        kinds=KINDS,
        packs={pack.domain: pack for pack in packs},
        library=empty(),
    )


def left_out(found: GivenEpoch) -> object:
    return found.found["evidence"]["left_out"]


OTHER = eval_task("Name the capital of France.")


def test_groups_become_train_scenarios(tmp_path: Path) -> None:
    found = epoch(tmp_path, GROUPS, [OTHER])
    assert [s.id for s in found.scenarios] == [f"evidence-g{n}" for n in range(1, 9)]
    assert {(s.domain, s.split, s.checks, s.family) for s in found.scenarios} == {
        ("general", "train", (), None)
    }
    assert [s.prompt for s in found.scenarios] == [one.prompt for one in GROUPS]
    assert found.scenarios[1].source == "evidence.jsonl:3"
    placed = epoch(tmp_path, GROUPS, [OTHER], evidence=str(tmp_path / "evidence.jsonl"))
    assert placed.scenarios[1].source == "evidence.jsonl:3"
    assert placed.found["evidence"]["file"] == str(tmp_path / "evidence.jsonl")
    assert found.sizes == {f"evidence-{one.id}": len(one.attempts) for one in GROUPS}
    assert (found.found["evidence"]["groups"], found.found["evidence"]["attempts"]) == (8, 25)


def test_an_attempt_has_its_steps_with_what_each_came_to(tmp_path: Path) -> None:
    failed = EvidenceStep(kind="tool", name="search", input={"q": "a"}, error="timeout", latency_ms=7.0)
    model = EvidenceStep(kind="model", name="m", output="Two.", latency_ms=3.0)
    attempts = tuple(
        EvidenceAttempt(total_reward=reward, answer="2", trajectory_id=f"t{reward}", steps=steps)
        for reward, steps in ((0.9, (failed, model)), (0.1, ()))
    )
    found = epoch(tmp_path, [replace(group(1), attempts=attempts)], [OTHER])
    rollout = found.attempts.filled(make_rollout(scenario_id="evidence-g1", index=0))
    assert rollout.frames == (
        Frame(kind="tool", name="search", input={"q": "a"}, error="timeout", latency_ms=7.0),
        Frame(kind="model", name="m", output="Two.", cost_usd=0.0, latency_ms=3.0),
    )
    assert (rollout.answer, rollout.latency_ms) == ("2", 10.0)


@pytest.mark.parametrize("split", ["eval", "dev"])
def test_tasks_that_overlap_what_decides_are_left_out(tmp_path: Path, split: str) -> None:
    same = [group(20, id="same", prompt=GROUPS[2].prompt), *GROUPS]
    found = epoch(tmp_path, same, [eval_task(GROUPS[2].prompt.upper(), split=split)])
    assert "evidence-g3" not in found.sizes
    assert "evidence-same" not in found.sizes
    assert left_out(found) == {"overlap": 2}


def test_a_train_scenario_may_ask_the_same(tmp_path: Path) -> None:
    assert len(epoch(tmp_path, GROUPS, [eval_task(GROUPS[2].prompt, split="train")]).sizes) == 8


def test_a_task_that_tells_an_eval_answer_is_left_out(tmp_path: Path) -> None:
    telling = group(30, id="telling", prompt=f"Someone wrote that {SECRET}. Say it in French.")
    found = epoch(tmp_path, [telling, *GROUPS], [eval_task("What is the password?", answer=SECRET)])
    assert "evidence-telling" not in found.sizes
    assert left_out(found) == {"overlap": 1}


def test_a_task_that_overlaps_is_replaced_by_the_next_one_drawn(tmp_path: Path) -> None:
    some = epoch(tmp_path, GROUPS, [OTHER], sample_size=3)
    assert left_out(some) == {"sample_size": 5}
    first = next(s for s in some.scenarios)
    other = epoch(tmp_path, GROUPS, [eval_task(first.prompt)], sample_size=3)
    assert len(other.sizes) == 3
    assert first.id not in other.sizes
    assert len(other.sizes.keys() & some.sizes.keys()) == 2
    assert left_out(other) == {"overlap": 1, "sample_size": 4}
    assert epoch(tmp_path, GROUPS, [OTHER], sample_size=3, seed=1).sizes != some.sizes


def test_a_group_with_equal_rewards_teaches_nothing(tmp_path: Path) -> None:
    found = epoch(tmp_path, [group(9, 0.5, 0.5), *GROUPS], [OTHER])
    assert "evidence-g9" not in found.sizes
    assert left_out(found) == {"no_spread": 1}


def test_a_domain_needs_a_pack_unless_the_suite_has_but_one(tmp_path: Path) -> None:
    foreign = [group(n, domain="elsewhere") for n in range(20, 23)]
    (only,) = {s.domain for s in epoch(tmp_path, foreign, [OTHER]).scenarios}
    assert only == "general"
    two = [OTHER, stamped(make_scenario("second", split="eval", domain="text"))]
    found = epoch(tmp_path, [*foreign, *GROUPS], two)
    assert left_out(found) == {"no_pack": 3}
    assert len(found.sizes) == 8
    for pack in ("elsewhere", "*"):
        known = epoch(tmp_path, [*foreign, *GROUPS], two, [make_pack(pack)])
        assert left_out(known) == {}


@pytest.mark.parametrize(
    ("groups", "why"), [([], "it has none"), ([group(1, 0.5, 0.5), group(2, 0.5, 0.5)], "2 no_spread")]
)
def test_evidence_that_teaches_nothing_is_an_error(
    tmp_path: Path, groups: list[EvidenceGroup], why: str
) -> None:
    with pytest.raises(SettingError, match=f"no group of .* can be used: {why}"):
        epoch(tmp_path, groups, [OTHER])


def test_an_id_of_the_suite_is_no_id_of_a_group(tmp_path: Path) -> None:
    taken = stamped(make_scenario("evidence-g1", split="eval", domain="general"))
    with pytest.raises(SettingError, match=r"evidence\.jsonl:2: the suite has a scenario 'evidence-g1' too"):
        epoch(tmp_path, GROUPS, [taken])

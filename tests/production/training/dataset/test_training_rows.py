"""Evidence as rows for trainers of weights: formats, holdout, what is left out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.evidence import group, write
from support.feedback.training import payload

from pytest_tfgrpo.core.errors import ExportError
from pytest_tfgrpo.core.evidence import EvidenceAttempt, EvidenceGroup, EvidenceHeader, evidence_lines
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.production.training.dataset import training_rows
from pytest_tfgrpo.production.training.dataset.said_rows import said_of_rows
from pytest_tfgrpo.production.training.dataset.training_rows import (
    held_out,
    write_training_rows,
)

GROUPS = [group(n, 0.9, 0.1, 0.4) for n in range(10)]


@pytest.fixture(autouse=True)
def no_parquet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the library alone that the slow tests load."""
    monkeypatch.setattr(training_rows, "can_write_parquet", lambda: False)


def rows(folder: Path, name: str) -> list[Any]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def written(
    folder: Path,
    algorithm: str,
    groups: Iterable[EvidenceGroup] = GROUPS,
    project: Path | None = None,
    **more: Any,
) -> list[str]:
    """Write evidence and its rows, and return the names of the files of rows."""
    write(folder / "evidence.jsonl", groups)
    write_training_rows(folder / "evidence.jsonl", payload(algorithm=algorithm, **more), project)
    return sorted(path.stem for path in folder.glob("*.jsonl") if path.stem != "evidence")


@pytest.mark.parametrize("algorithm", ["ppo", "rloo", "grpo", "reinforce"])
def test_attempts_with_rewards_and_prompts_to_sample_again(tmp_path: Path, algorithm: str) -> None:
    assert written(tmp_path, algorithm) == ["prompt", "rollouts"]
    found = rows(tmp_path, "rollouts")
    assert len(found) == 30
    assert not [fault for row in found for fault in violations("rollouts", row)]
    first = found[0]
    assert (first["reward"], first["gt_score"], first["seed"], first["temperature"]) == (
        0.9,
        None,
        None,
        None,
    )
    assert (first["rollout_id"], first["run_id"]) == ("t0-0", payload()["training_job_id"])
    assert [one["role"] for one in first["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert first["messages"][0]["content"] == GROUPS[0].prompt
    assert first["messages"][-1]["content"] == "answer 0-0"
    assert first["advantage_kind"] == ("rloo" if algorithm == "rloo" else "grpo")
    assert sum(row["advantage"] for row in found[:3]) == pytest.approx(0.0)
    prompts = rows(tmp_path, "prompt")
    assert [one["prompt"][0]["content"] for one in prompts] == [one.prompt for one in GROUPS]
    assert {one["reward_model"]["style"] for one in prompts} == {"model"}, "no check knows what is right"


def test_pairs_for_dpo(tmp_path: Path) -> None:
    assert written(tmp_path, "dpo") == ["preference"]
    found = rows(tmp_path, "preference")
    assert found[0]["chosen"][-1]["content"] == "answer 0-0"
    assert (found[0]["chosen_reward"], found[0]["rejected_reward"]) == (0.9, 0.1)


def test_a_reward_that_the_request_wants_at_least_is_that_of_each_row(tmp_path: Path) -> None:
    header = EvidenceHeader(filter={"min_reward": 0.4})
    (tmp_path / "evidence.jsonl").write_text("".join(evidence_lines(header, GROUPS)))
    for algorithm in ("ppo", "dpo"):
        (tmp_path / "rows.json").unlink(missing_ok=True)
        write_training_rows(tmp_path / "evidence.jsonl", payload(algorithm=algorithm), None)
    assert {row["reward"] for row in rows(tmp_path, "rollouts")} == {0.9, 0.4}
    assert {row["rejected_reward"] for row in rows(tmp_path, "preference")} == {0.1, 0.4}
    assert {row["chosen_reward"] for row in rows(tmp_path, "preference")} == {0.9}


def test_a_holdout_has_whole_tasks_whoever_made_the_attempts(tmp_path: Path) -> None:
    twins = [
        group(n, prompt=text, id=f"{model}{n}", model=model, task_key=key)
        for n in range(10)
        for model, text, key in (
            ("a", f"Task  {n}?", None),
            ("b", f"task {n}?", None),
            ("c", f"x{n}{n}", "same" if n == 9 else None),
            ("d", f"y{n}", "same" if n == 9 else None),
        )
    ]
    names = written(tmp_path, "ppo", twins, evaluation={"holdout_size": 0.2})
    assert names == ["prompt", "prompt-holdout", "rollouts", "rollouts-holdout"]
    held = {row["scenario_id"] for row in rows(tmp_path, "rollouts-holdout")}
    kept = {row["scenario_id"] for row in rows(tmp_path, "rollouts")}
    assert len(held | kept) == len(twins)
    assert not held & kept
    for one, other in [
        *((f"evidence-a{n}", f"evidence-b{n}") for n in range(10)),
        ("evidence-c9", "evidence-d9"),
    ]:
        assert (one in held) is (other in held)
    tasks = {row["extra_info"]["scenario_id"] for row in rows(tmp_path, "prompt-holdout")}
    assert tasks == held


@pytest.mark.parametrize(
    ("tasks", "size", "wanted"),
    [(10, 0.0, 0), (10, 0.1, 1), (100, 0.25, 25), (3, 0.01, 1), (3, 1.0, 2), (1, 0.5, 0)],
)
def test_a_holdout_is_a_share_of_the_tasks_and_never_all(tasks: int, size: float, wanted: int) -> None:
    assert len(held_out({str(n) for n in range(tasks)}, size)) == wanted


def test_rows_that_are_there_are_left_alone_and_unfinished_ones_written_again(tmp_path: Path) -> None:
    written(tmp_path, "ppo")
    (tmp_path / "rollouts.jsonl").write_text("mine")
    write_training_rows(tmp_path / "evidence.jsonl", payload(algorithm="ppo"), None)
    assert (tmp_path / "rollouts.jsonl").read_text() == "mine"
    (tmp_path / "rows.json").unlink()
    write_training_rows(tmp_path / "evidence.jsonl", payload(algorithm="ppo"), None)
    assert len(rows(tmp_path, "rollouts")) == 30
    assert (tmp_path / "rollouts.jsonl").stat().st_mode & 0o077 == 0


def test_what_was_left_out_is_said(tmp_path: Path) -> None:
    secret = EvidenceAttempt(total_reward=0.5, answer="mail [redacted:email:3f9a1c]")
    mixed = [EvidenceGroup(domain="x", prompt="p?", attempts=(*GROUPS[0].attempts, secret))]
    assert said_of_rows(tmp_path) == ()
    written(tmp_path, "rloo", mixed)
    said = said_of_rows(tmp_path)
    job = payload()["training_job_id"]
    assert said[:4] == [
        "compared with no suite, as [training] project names none",
        f"rollouts.jsonl: 3 rows from 1 group of the evidence of {job}",
        "left out: secret in what the agent said or read 1",
        "advantage rloo: reward - mean of the others in the group",
    ]
    assert said[-1] == "no Parquet without the extra datasets: pip install 'pytest-tfgrpo[datasets]'"


def test_tasks_of_the_eval_split_are_trained_on_by_nobody(tmp_path: Path) -> None:
    suite, job = tmp_path / "suite", tmp_path / "job"
    suite.mkdir()
    job.mkdir()
    scenarios = [
        {"id": f"s{n}", "domain": "general", "split": split, "prompt": GROUPS[n].prompt, "checks": [check]}
        for n, (split, check) in enumerate(
            [
                ("eval", {"kind": "number", "value": 0}),
                ("dev", {"kind": "number", "value": 2}),
                ("train", {"kind": "number", "value": 4}),
                ("eval", {"kind": "of_our_own", "value": 6}),
            ]
        )
    ]
    (suite / "own.scenario.json").write_text(json.dumps(scenarios))
    keyed = [replace(one, task_key="k") if one.id in ("g0", "g9") else one for one in GROUPS]
    written(job, "ppo", keyed, project=suite, evaluation={"holdout_size": 0.2})
    assert said_of_rows(job)[0] == (
        "compared with 3 scenarios of the project (1 other cannot be read here): 2 tasks overlapping the "
        "dev or eval split left out"
    )
    found = {row["scenario_id"] for part in ("", "-holdout") for row in rows(job, f"rollouts{part}")}
    assert found == {f"evidence-g{n}" for n in range(2, 9)}, "g9 is another wording of an eval task"
    assert len(rows(job, "prompt-holdout")) == 1


def test_without_a_row_there_is_nothing_to_train_on(tmp_path: Path) -> None:
    secret = EvidenceAttempt(total_reward=0.5, answer="[redacted:key]")
    other = EvidenceAttempt(total_reward=0.1, answer="[redacted:key]")
    with pytest.raises(ExportError, match="has no row to export"):
        written(tmp_path, "ppo", [EvidenceGroup(domain="x", prompt="p?", attempts=(secret, other))])
    assert not (tmp_path / "rows.json").exists()
    assert not (tmp_path / "rollouts.jsonl").exists()


def test_evidence_without_groups_has_no_rows(tmp_path: Path) -> None:
    assert written(tmp_path, "ppo", []) == []


def test_a_holdout_without_a_row_is_said_and_the_others_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_rows, "can_write_parquet", lambda: True)
    monkeypatch.setattr(training_rows, "write_parquet", lambda target: target.name)
    (held,) = training_rows.held_out([training_rows._task(one) for one in GROUPS[:4]], 0.1)  # type: ignore[arg-type]
    secret = EvidenceAttempt(total_reward=0.5, answer="[redacted:key]")
    other = EvidenceAttempt(total_reward=0.1, answer="[redacted:key]")
    groups = [
        replace(one, attempts=(secret, other)) if training_rows._task(one) == held else one  # type: ignore[arg-type]
        for one in GROUPS[:4]
    ]
    assert written(tmp_path, "dpo", groups, evaluation={"holdout_size": 0.1}) == ["preference"]
    said = said_of_rows(tmp_path)
    assert [one for one in said if one.endswith(": the same rows")] == ["preference.jsonl: the same rows"]
    assert any("has no row to export" in one for one in said)
    assert "no Parquet" not in said[-1]

"""An export: which rollouts become rows, what is left out and why, and when nothing is written."""

from __future__ import annotations

import fcntl
import json
import math
import resource
import signal
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.builders import make_experience, make_frame, make_pack, make_rollout, make_scenario
from support.journals import JournalEvent, group_events, make_training_group, write_run

from pytest_tfgrpo.core.errors import ExportError, JournalError
from pytest_tfgrpo.core.lessons import Library, Revision
from pytest_tfgrpo.core.records import Failure, Frame, Group, Rollout, Usage
from pytest_tfgrpo.core.sampled import Sampled
from pytest_tfgrpo.core.scenarios import Criterion
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.export.export import Export, export
from pytest_tfgrpo.export.rows import ExportFormat

SECRET = "sk-" + "a1B2c3D4e5F6g7H8i9J0"


def exported(folder: Path, shape: ExportFormat = "rollouts", **wanted: Any) -> tuple[list[Any], str]:
    """Return the rows of a run, and what the export said of them."""
    file = folder / "rows.jsonl"
    said = "\n".join(export(folder, file, Export(format=shape, force=True, **wanted)))
    rows = [json.loads(line) for line in file.read_bytes().splitlines()]
    if shape == "rollouts":
        assert [found for row in rows for found in violations("rollouts", row)] == []
    return rows, said


def left_out(said: str) -> str:
    return said.splitlines()[1].removeprefix("left out: ")


def run_of(folder: Path, *groups: Group, **more: Any) -> Path:
    return write_run(folder, [event for group in groups for event in group_events(group)], **more)


def ids(rows: Sequence[Any]) -> list[str]:
    return [row["rollout_id"].removeprefix("run1.") for row in rows]


def test_a_row_has_the_conversation_the_score_and_both_advantages(tmp_path: Path) -> None:
    group = make_training_group([1.0, 0.0, 0.0])
    rows, said = exported(run_of(tmp_path, group))
    assert ids(rows) == ["e1.count-words.r0", "e1.count-words.r1", "e1.count-words.r2"]
    first = rows[0]
    assert [(m["role"], m["content"]) for m in first["messages"]] == [
        ("system", "Solve the task."),
        ("user", "How many words are in 'a b c'?"),
        ("assistant", ""),
        ("tool", "3"),
        ("assistant", "answer 0"),
    ]
    assert first["prompt_messages"] == 2
    assert (first["reward"], first["gt_score"], first["run_advantage"]) == (1.0, 1.0, None)
    assert first["advantage"] == pytest.approx((2 / 3) / (math.sqrt(1 / 3) + 1e-4))
    assert said.splitlines()[1:] == [
        "left out: nothing",
        "advantage grpo: (reward - mean of the group) / (deviation of the group, ddof 1, + 0.0001)",
    ]


@pytest.mark.parametrize(("kind", "first", "second"), [("dr_grpo", 2 / 3, -1 / 3), ("rloo", 1.0, -0.5)])
def test_the_convention_of_the_advantage_is_chosen_and_named(
    tmp_path: Path, kind: Any, first: float, second: float
) -> None:
    rows, said = exported(run_of(tmp_path, make_training_group([1.0, 0.0, 0.0])), advantage=kind)
    assert [row["advantage"] for row in rows] == pytest.approx([first, second, second])
    assert {row["advantage_kind"] for row in rows} == {kind}
    assert all(row["advantage_formula"].startswith("reward - mean of the ") for row in rows)
    assert f"advantage {kind}: reward - mean of the" in said


def test_a_group_without_spread_says_why_its_advantages_are_0(tmp_path: Path) -> None:
    first, second, third = (make_scenario(name) for name in "abc")
    groups = [
        make_training_group([0.7, 0.7], first),
        make_training_group([0.7, None], second),
        make_training_group([0.7, 0.2, None], third),
    ]
    rows, said = exported(run_of(tmp_path, *groups, scenarios=[first, second, third]))
    assert [(row["advantage"] == 0, row["advantage_reason"]) for row in rows] == [
        (True, "zero_spread"),
        (True, "zero_spread"),
        (True, "singleton"),
        (False, ""),
        (False, ""),
    ]
    assert left_out(said) == "error 2"


def change(only: int, **fields: Any) -> Any:
    def made(rollout: Rollout) -> Rollout:
        return replace(rollout, **fields) if rollout.index == only else rollout

    return made


def test_what_cannot_be_learned_from_is_left_out_and_counted(tmp_path: Path) -> None:
    names = [f"s{n}" for n in range(6)]
    scenarios = [make_scenario(name) for name in names]
    scenarios[3] = make_scenario("s3", prompt=f"Use the key {SECRET} to log in.")
    groups = [
        make_training_group([1.0, None], scenarios[0]),
        make_training_group([1.0, 0.0], scenarios[1], change=change(0, prompt_stamp="f" * 64)),
        make_training_group([1.0, 0.0], scenarios[2], change=change(1, answer=f"It is {SECRET}")),
        make_training_group([1.0, 0.0], scenarios[3]),
        make_training_group(
            [1.0, 0.0], scenarios[4], change=change(0, frames=(make_frame(input={"key": SECRET}),))
        ),
        make_training_group([1.0, 0.0], scenarios[5], change=change(0, answer="the key [redacted:api_key]")),
    ]
    cut = to_wire(make_rollout(7, None, status="cancelled", scenario_id="s0"))
    alone = to_wire(make_rollout(8, scenario_id="s0"))
    events = [event for group in groups for event in group_events(group)]
    rows, said = exported(write_run(tmp_path, [("abandoned", cut), ("rollout", alone), *events], scenarios))
    assert ids(rows) == ["e1.s0.r0", "e1.s1.r1", "e1.s2.r0", "e1.s4.r1", "e1.s5.r1"]
    assert left_out(said) == (
        "cancelled 1, error 1, in no scored group 1, prompt does not match its stamp 1, "
        "secret in the prompt 2, secret in what the agent said or read 3"
    )
    assert SECRET not in (tmp_path / "rows.jsonl").read_text()
    assert rows[1]["advantage"] < 0, "a rollout that is left out counts in its group"
    rows, said = exported(tmp_path, "prompt")
    assert [row["extra_info"]["scenario_id"] for row in rows] == ["s0", "s2", "s4", "s5"]
    assert left_out(said) == "prompt does not match its stamp 1, secret in the prompt 1"
    again, bare_said = exported(tmp_path, "prompt", bare=True)
    assert (len(again), left_out(bare_said)) == (len(rows), left_out(said))


def test_two_texts_that_are_a_secret_together_are_none_apart(tmp_path: Path) -> None:
    frames = (make_frame(output="my password:"),)
    group = make_training_group([1.0, 0.0], change=change(0, frames=frames, answer="hunter22 is a street"))
    rows, said = exported(run_of(tmp_path, group))
    assert (len(rows), left_out(said)) == (2, "nothing")


def test_a_failed_rollout_is_a_row_with_what_there_is_of_it(tmp_path: Path) -> None:
    failure = Failure(code="timeout", message="no answer within 1 s")
    group = make_training_group(
        [1.0, 0.0], change=change(1, status="failed", answer="", frames=(), failure=failure)
    )
    rows, _ = exported(run_of(tmp_path, group))
    assert (rows[1]["status"], rows[1]["failure"], rows[1]["reward"]) == ("failed", "timeout", 0.0)
    assert [m["role"] for m in rows[1]["messages"]] == ["system", "user"]


def sweep(mode: str, scenario: str, epoch: int) -> list[JournalEvent]:
    group = make_training_group([1.0, 0.0], make_scenario(scenario), epoch=epoch)
    found = replace(
        group,
        mode=mode,
        rollouts=tuple(replace(r, mode=mode) for r in group.rollouts),  # type: ignore[arg-type]
    )
    return group_events(found)


def test_rollouts_of_eval_and_dev_are_never_rows(tmp_path: Path) -> None:
    train, evals, dev, moved = (
        make_scenario("train"),
        make_scenario("evals", split="eval"),
        make_scenario("dev", split="dev"),
        make_scenario("moved", split="eval"),
    )
    events = [
        *sweep("baseline", "evals", 0),
        *group_events(make_training_group([1.0, 0.0], train)),
        *group_events(make_training_group([1.0, 0.0], moved)),
        *sweep("dev", "dev", 1),
        *sweep("eval", "evals", 2),
        *sweep("early", "evals", -1),
    ]
    folder = write_run(tmp_path, events, [train, evals, dev, moved])
    for shape in ("rollouts", "preference", "prompt"):
        rows, said = exported(folder, shape)  # type: ignore[arg-type]
        assert {json.dumps(row).count('"train"') > 0 for row in rows} == {True}
        assert not any(name in json.dumps(rows) for name in ("evals", "moved", '"dev"'))
        assert left_out(said) == "nothing"


def test_rows_are_in_order_of_epoch_scenario_and_place_whatever_the_order_of_the_journal(
    tmp_path: Path,
) -> None:
    scenarios = [make_scenario(name) for name in ("b", "a")]
    groups = [make_training_group([1.0, 0.0], s, epoch=e) for e in (2, 1) for s in reversed(scenarios)]
    rows, _ = exported(run_of(tmp_path, *groups, scenarios=scenarios, epochs=2))
    assert ids(rows) == [f"e{e}.{s}.r{i}" for e in (1, 2) for s in "ba" for i in (0, 1)]


def test_rows_that_show_the_type_of_a_column_come_first(tmp_path: Path) -> None:
    plain, last, tools, sampled, probable = (make_scenario(name) for name in "abcde")
    frames = {
        "c": make_rollout().frames,
        "d": (model("x", kind="unknown", logprobs=None, token_ids=(1, 2)),),
        "e": (model("x"),),
    }
    groups = [
        make_training_group([1.0, 0.0], s, change=lambda r: replace(r, frames=frames.get(r.scenario_id, ())))
        for s in (plain, last, tools, sampled, probable)
    ]
    folder = run_of(tmp_path, *groups, scenarios=[plain, last, tools, sampled, probable])
    rows, said = exported(folder)
    assert [row["scenario_id"] for row in rows[::2]] == ["c", "e", "d", "a", "b"]
    assert said.splitlines()[0].endswith("10 rows from 5 groups of run run1")
    rows, _ = exported(folder, "preference")
    assert [row["scenario_id"] for row in rows] == ["c", "a", "b", "d", "e"]


def test_a_row_names_actor_rollout_and_what_the_run_made_of_it(tmp_path: Path) -> None:
    group = make_training_group([1.0, 0.0], epoch=2, change=change(1, seed=77, temperature=0.3))
    score = replace(group.scores[1], advantage=-1.5, advantage_reason="")
    group = replace(group, scores=(group.scores[0], score))
    named = {"actor": {"name": "solver", "stamp": "s"}}
    for identities, actor in ((named, "solver"), ({}, "")):
        rows, _ = exported(run_of(tmp_path, group, epochs=2, identities=identities))
        kept = ("actor", "group_id", "epoch", "index", "seed", "temperature", "run_advantage", "domain")
        assert [rows[1][key] for key in kept] == [
            actor, "run1.e2.count-words", 2, 1, 77, 0.3, -1.5, "text",
        ]  # fmt: skip


def test_what_a_resumed_run_made_again_counts_as_it_was_at_last(tmp_path: Path) -> None:
    before, after = make_training_group([1.0, None]), make_training_group([0.0, 1.0])
    repeated = [("rollout", to_wire(after.rollouts[1])), group_events(after)[-1]]
    rows, said = exported(write_run(tmp_path, [*group_events(before), ("resume", {}), *repeated]))
    assert [(row["rollout_id"][-2:], row["reward"], row["status"]) for row in rows] == [
        ("r0", 0.0, "ok"),
        ("r1", 1.0, "ok"),
    ]
    assert left_out(said) == "made again after a resume 1"
    twice = [*repeated, ("resume", {}), *repeated]
    cut = [("abandoned", to_wire(make_rollout(n, None, status="cancelled"))) for n in (7, 8)]
    rows, said = exported(write_run(tmp_path, [*group_events(before), ("resume", {}), *twice, *cut]))
    assert (len(rows), left_out(said)) == (2, "cancelled 2, made again after a resume 2")
    rows, said = exported(write_run(tmp_path, [*group_events(before), group_events(after)[-1]]))
    assert ([row["reward"] for row in rows], left_out(said)) == ([0.0, 1.0], "nothing")


def test_lessons_are_part_of_the_prompt_that_was_sent(tmp_path: Path) -> None:
    lesson = make_experience(7)
    library = Library(experiences=(lesson,), hash="x")
    group = make_training_group([1.0, 0.0], lessons=[lesson])
    folder = run_of(tmp_path, group, library=library)
    (row, _), _ = exported(folder)
    assert row["lessons"] == 1
    assert "For counting tasks use count_words, lesson 7." in row["messages"][0]["content"]
    (pair,), _ = exported(folder, "preference")
    assert "lesson 7" in pair["prompt"][0]["content"]
    (pair,), _ = exported(folder, "preference", bare=True)
    assert pair["prompt"][0] == {"role": "system", "content": "Solve the task."}
    (prompt,), _ = exported(folder, "prompt")
    assert "lesson 7" in prompt["prompt"][0]["content"]
    (prompt,), _ = exported(folder, "prompt", bare=True)
    assert prompt["prompt"][0] == {"role": "system", "content": "Solve the task."}


def test_a_prompt_whose_pack_or_lessons_are_lost_does_not_match_its_stamp(tmp_path: Path) -> None:
    group = make_training_group([1.0, 0.0], lessons=[make_experience(7)])
    with pytest.raises(ExportError, match="prompt does not match its stamp 2"):
        exported(run_of(tmp_path, group))
    for packs in ([make_pack(system="Other.")], []):
        run_of(tmp_path, make_training_group([1.0, 0.0]), packs=packs)
        with pytest.raises(ExportError, match="prompt does not match its stamp 2"):
            exported(tmp_path)
        with pytest.raises(ExportError, match="prompt does not match its stamp 1"):
            exported(tmp_path, "prompt", bare=True)
    assert not (tmp_path / "rows.jsonl").exists()


# preference


def test_a_pair_is_a_winner_above_and_a_loser_below_the_mean_and_a_group_gives_four_at_most(
    tmp_path: Path,
) -> None:
    scenarios = [make_scenario(name) for name in ("many", "one", "none", "middle")]
    groups = [
        make_training_group([1.0] * 5 + [0.0] * 6, scenarios[0]),
        make_training_group([0.9, 0.1, 0.2], scenarios[1]),
        make_training_group([1.0, 1.0], scenarios[2]),
        make_training_group([1.0, 0.5, 0.0], scenarios[3]),
    ]
    rows, said = exported(run_of(tmp_path, *groups, scenarios=scenarios), "preference")
    pairs = [(r["scenario_id"], r["chosen_id"][-2:], r["rejected_id"][-2:]) for r in rows]
    assert pairs == [
        *(("many", f"r{n}", f"r{n + 5}") for n in range(4)),
        ("one", "r0", "r1"),
        ("one", "r0", "r2"),
        ("middle", "r0", "r2"),
    ]
    assert left_out(said) == "groups without a pair 1"
    assert rows[0]["prompt"][-1] == {"role": "user", "content": "How many words are in 'a b c'?"}
    assert rows[0]["chosen"][-1]["content"] == "answer 0"
    assert (rows[4]["chosen_reward"], rows[4]["rejected_reward"]) == (0.9, 0.1)


def test_equal_conversations_make_one_pair_and_one_that_won_and_lost_makes_none(tmp_path: Path) -> None:
    scenarios = [make_scenario(name) for name in ("equal", "noisy", "silent", "mixed")]
    said = {"equal": "aabb", "noisy": "aaab", "silent": "a\0b\0", "mixed": "abac"}

    def says(rollout: Rollout) -> Rollout:
        return replace(rollout, answer=said[rollout.scenario_id][rollout.index].strip("\0"))

    groups = [make_training_group([1.0, 1.0, 0.0, 0.0], s, change=says) for s in scenarios]
    rows, told = exported(run_of(tmp_path, *groups, scenarios=scenarios), "preference")
    assert [(r["scenario_id"], r["chosen_id"][-2:], r["rejected_id"][-2:]) for r in rows] == [
        ("equal", "r0", "r2"),
        ("silent", "r0", "r2"),
        ("mixed", "r1", "r3"),
    ]
    assert left_out(told) == "without an answer 2, groups without a pair 1"


def test_answers_that_are_all_dates_come_with_a_word_of_warning(tmp_path: Path) -> None:
    def dated(rollout: Rollout) -> Rollout:
        return replace(rollout, answer=f"2026-01-0{rollout.index + 1}", frames=())

    _, said = exported(run_of(tmp_path, make_training_group([1.0, 0.0], change=dated)), "preference")
    assert "every text of 'chosen' is a date: pass features to datasets, or it reads them as times" in said
    assert "every text of 'rejected'" in said


# prompt


def test_a_prompt_row_has_what_trainers_of_policies_ask_for(tmp_path: Path) -> None:
    scenario = make_scenario("b", domain="text")
    groups = [make_training_group([1.0, None], scenario, epoch=e) for e in (1, 2)]
    (row,), said = exported(run_of(tmp_path, *groups, scenarios=[scenario], epochs=2), "prompt")
    assert row == {
        "data_source": "demo",
        "prompt": [
            {"role": "system", "content": "Solve the task."},
            {"role": "user", "content": "How many words are in 'a b c'?"},
        ],
        "ability": "text",
        "reward_model": {
            "style": "rule",
            "ground_truth": '[{"kind": "exact", "weight": 1.0, "params": {"value": "3"}}]',
        },
        "extra_info": {
            "index": 0,
            "split": "train",
            "scenario_id": "b",
            "scenario_stamp": "0" * 64,
            "rubric": "[]",
            "run_id": "run1",
        },
    }
    assert said.splitlines()[0].endswith("1 row from 1 scenario of run run1")


# sampled


def model(text: str, **sampled: Any) -> Frame:
    own = Sampled(**{"kind": "processed", "logprobs": (-0.25, -0.5), "temperature": 0.7} | sampled)
    return Frame(kind="model", name="m", output=text, usage=Usage(prompt=1, completion=2), sampled=own)


def sampled_rows(folder: Path, *frames: Frame, answer: str = "3") -> tuple[Any, str]:
    group = make_training_group([1.0, 0.0], change=change(0, frames=frames, answer=answer))
    (row, _), _ = exported(run_of(folder, group))
    return row["sampled"], row["sampled_reason"]


def test_log_probabilities_are_kept_message_by_message(tmp_path: Path) -> None:
    frames = model("", token_ids=(5, 6)), make_frame(), model("It is 3", logprobs=(-1.0,), token_ids=(7,))
    found, reason = sampled_rows(tmp_path, *frames)
    assert reason == ""
    assert found == [
        {
            "message": 2,
            "kind": "processed",
            "temperature": 0.7,
            "logprobs": [-0.25, -0.5],
            "token_ids": [5, 6],
        },
        {"message": 4, "kind": "processed", "temperature": 0.7, "logprobs": [-1.0], "token_ids": [7]},
    ]


@pytest.mark.parametrize(
    ("frames", "reason"),
    [
        ((model("3", kind="raw"),), "raw_at_temperature"),
        ((model("", kind="raw"), make_frame(), model("3")), "raw_at_temperature"),
        ((model("3", kind="unknown"),), "unknown_at_temperature"),
        ((model("3", logprobs=None, reason="short"),), "short"),
        ((model("3", temperature=0.0),), "greedy"),
        ((model(""), make_frame()), "missing_logprobs"),
        ((model("4"),), "missing_logprobs"),
        ((), "missing_logprobs"),
    ],
)
def test_log_probabilities_that_cannot_serve_are_null_with_the_reason(
    tmp_path: Path, frames: Sequence[Frame], reason: str
) -> None:
    assert sampled_rows(tmp_path, *frames) == (None, reason)


def test_ids_of_tokens_stay_where_log_probabilities_cannot_serve(tmp_path: Path) -> None:
    raw, drawn = model("", kind="raw", token_ids=(5, 6)), model("3", token_ids=(7, 8))
    found, reason = sampled_rows(tmp_path, raw, make_frame(), drawn)
    assert reason == "raw_at_temperature"
    assert [(one["message"], one["kind"], one["logprobs"], one["token_ids"]) for one in found] == [
        (2, "raw", None, [5, 6]),
        (4, "processed", None, [7, 8]),
    ]
    for last in (model("3"), model("4", token_ids=(7, 8))):  # without ids; another text than the answer
        found, reason = sampled_rows(tmp_path, raw, make_frame(), last)
        assert (found, reason) == (None, "raw_at_temperature")


def test_raw_log_probabilities_serve_at_temperature_1(tmp_path: Path) -> None:
    found, reason = sampled_rows(tmp_path, model("3", kind="raw", temperature=1.0))
    assert reason == ""
    assert found[0]["logprobs"] == [-0.25, -0.5]


# refusals


@pytest.mark.parametrize(
    ("status", "word"), [(None, "killed"), ("cancelled", "cancelled"), ("aborted", "aborted")]
)
def test_an_unfinished_run_is_refused_with_the_command_that_resumes_it(
    tmp_path: Path, status: str | None, word: str
) -> None:
    run_of(tmp_path, make_training_group([1.0, 0.0]), status=status)
    with pytest.raises(ExportError, match=rf"run run1 is {word}, .* pytest --tfgrpo --tfgrpo-resume=run1$"):
        exported(tmp_path)
    assert list(tmp_path.iterdir()) == [tmp_path / "journal.jsonl"]


def test_a_run_that_was_killed_after_it_was_resumed_is_unfinished(tmp_path: Path) -> None:
    events = group_events(make_training_group([1.0, 0.0]))
    write_run(tmp_path, [*events, ("finish", {"status": "complete"}), ("resume", {})], status=None)
    with pytest.raises(ExportError, match="is killed"):
        exported(tmp_path)


def test_a_run_that_goes_on_is_refused(tmp_path: Path) -> None:
    run_of(tmp_path, make_training_group([1.0, 0.0]))
    with (tmp_path / "journal.jsonl").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(ExportError, match="is still running"):
            exported(tmp_path)


def test_a_run_without_a_row_leaves_no_file_and_says_why(tmp_path: Path) -> None:
    flat = make_training_group([1.0, 1.0])
    with pytest.raises(ExportError, match=r"has no row to export \(left out: groups without a pair 1\)"):
        exported(run_of(tmp_path, flat), "preference")
    with pytest.raises(ExportError, match=r"it has no training group; export a run that learned"):
        exported(write_run(tmp_path, []))
    assert list(tmp_path.iterdir()) == [tmp_path / "journal.jsonl"]


def test_a_file_is_replaced_only_by_force_and_a_device_never(tmp_path: Path) -> None:
    folder = run_of(tmp_path / "run", make_training_group([1.0, 0.0]))
    file = tmp_path / "mine.jsonl"
    file.write_text("mine")
    with pytest.raises(ExportError, match=r"mine.jsonl exists; .* or replace it with --force"):
        [*export(folder, file, Export(format="rollouts"))]
    assert file.read_text() == "mine"
    assert [*export(folder, file, Export(format="rollouts", force=True))]
    assert file.read_text().count("\n") == 2
    for other in (Path("/dev/null"), tmp_path):
        with pytest.raises(ExportError, match=r"exists; name another file with -o$"):
            [*export(folder, other, Export(format="rollouts", force=True))]


def test_a_file_that_a_run_keeps_is_not_replaced_even_by_force(tmp_path: Path) -> None:
    folder = run_of(tmp_path / "out/task/runs/run1", make_training_group([1.0, 0.0]), epochs=2)
    journal, library = folder / "journal.jsonl", folder.parents[1] / "library.json"
    library.write_text("{}\n")
    link, empty = tmp_path / "link.jsonl", folder / "metrics.jsonl"
    link.symlink_to(journal)
    empty.touch()
    before = journal.read_bytes()
    for file in (journal, library, link, empty):
        for force in (True, False):
            with pytest.raises(
                ExportError, match="belongs to a run, and is not an earlier export; name another"
            ):
                [*export(folder, file, Export(format="rollouts", force=force))]
    assert (journal.read_bytes(), library.read_text(), empty.read_bytes()) == (before, "{}\n", b"")
    formats: tuple[ExportFormat, ...] = ("rollouts", "preference", "prompt")
    for shape in formats:
        for _ in range(2):
            [*export(folder, folder / "mine.jsonl", Export(format=shape, force=True))]


def test_a_name_that_cannot_be_is_refused_in_terms_of_the_name(tmp_path: Path) -> None:
    folder = run_of(tmp_path, make_training_group([1.0, 0.0]))
    for name, said in (
        ("none/x", "No such file"),
        ("journal.jsonl/x", "Not a directory"),
        ("x" * 300, "too long"),
    ):
        with pytest.raises(
            ExportError, match=f"cannot write .*{name[:20]}: .*{said}.*; name another file"
        ) as found:
            [*export(folder, tmp_path / name, Export(format="rollouts"))]
        assert ".tmp" not in str(found.value)


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    folder = run_of(tmp_path / "run", make_training_group([1.0, 0.0] * 20))
    file = tmp_path / "mine.jsonl"
    file.write_text("mine")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(ExportError, match=r"cannot write .*mine.jsonl.*; name another file with -o"):
            [*export(folder, file, Export(format="rollouts", force=True))]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert {path.name for path in tmp_path.iterdir()} == {"run", "mine.jsonl"}
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    "event",
    [
        ("group", {"mode": "train", "group_id": "run1.e1.count-words", "rollouts": [["nobody", "ok"]]}),
        ("rollout", {"mode": "train", "rollout_id": "x"}),
        ("rollout", {}),
        ("rollout", 3),
        (
            "rollout",
            {
                "mode": "train",
                "rollout_id": "x",
                "group_id": "g",
                "frames": [{"kind": "model", "sampled": [1]}],
            },
        ),
        ("revision", {"epoch": "x"}),
    ],
)
def test_a_journal_that_does_not_fit_together_is_refused_with_its_line(
    tmp_path: Path, event: JournalEvent
) -> None:
    with pytest.raises(JournalError, match=r"journal.jsonl:2: event '\w+' cannot be read: "):
        exported(write_run(tmp_path, [event]))


@pytest.mark.parametrize(
    "other",
    [
        {"scores": []},
        {"scenario_id": "another"},
        {"rollouts": [["run1.e1.count-words.r0", ["ok"]], ["run1.e1.count-words.r1", "ok"]]},
    ],
)
def test_a_group_that_does_not_fit_its_rollouts_is_refused_by_its_id(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    *rollouts, (name, group) = group_events(make_training_group([1.0, 0.0]))
    write_run(tmp_path, [*rollouts, (name, group | other)])
    with pytest.raises(JournalError, match=r"group 'run1.e1.count-words' cannot be read: "):
        exported(tmp_path)


def test_a_damaged_journal_is_refused(tmp_path: Path) -> None:
    run_of(tmp_path, make_training_group([1.0, 0.0]))
    journal = tmp_path / "journal.jsonl"
    whole = journal.read_bytes()
    for damaged in (b"", whole.replace(b'"answer 1"', b'"answer 2"'), b'{"n":1}\n' + whole):
        journal.write_bytes(damaged)
        with pytest.raises(JournalError):
            exported(tmp_path)
    journal.unlink()
    with pytest.raises(JournalError, match="cannot read the journal"):
        exported(tmp_path)


def test_half_a_surrogate_pair_does_not_make_a_file_unreadable(tmp_path: Path) -> None:
    group = make_training_group([1.0, 0.0], change=change(0, answer="\ud800 \U0001f600 \u2028 ü"))
    rows, _ = exported(run_of(tmp_path, group))
    assert rows[0]["messages"][-1]["content"] == "? \U0001f600 \u2028 ü"
    assert (tmp_path / "rows.jsonl").read_bytes().isascii()


# size


def test_memory_does_not_grow_with_the_rollouts(tmp_path: Path) -> None:
    long = make_frame(output="word " * 1_000)

    def events(epochs: int) -> Iterator[JournalEvent]:
        for epoch in range(1, epochs + 1):
            group = make_training_group(
                [1.0, 0.0] * 4, epoch=epoch, change=lambda r: replace(r, frames=(long,))
            )
            yield from group_events(group)

    peaks, sizes = [], []
    for epochs in (2, 6, 46):
        write_run(tmp_path, events(epochs), epochs=epochs)
        tracemalloc.start()
        [*export(tmp_path, tmp_path / "rows.jsonl", Export(format="rollouts", force=True))]
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        sizes.append((tmp_path / "rows.jsonl").stat().st_size)
    assert sizes[2] - sizes[1] > 1_500_000
    assert peaks[2] - peaks[1] < 0.1 * (sizes[2] - sizes[1])


# what is left out, and what comes first


def test_a_rollout_without_a_reward_of_its_own_and_one_below_the_least_are_left_out(tmp_path: Path) -> None:
    group = make_training_group([1.0, 0.5, 0.25, 0.0])
    group = replace(group, scores=(replace(group.scores[0], reward=None), *group.scores[1:]))
    rows, said = exported(run_of(tmp_path, group), min_reward=0.25)
    assert [row["reward"] for row in rows] == [0.5, 0.25]
    assert left_out(said) == "below the least reward 1, without a score 1"
    rows, said = exported(tmp_path, "preference", min_reward=0.5)
    assert [(row["chosen_reward"], row["rejected_reward"]) for row in rows] == [(0.5, 0.0)]
    with pytest.raises(ExportError, match=r"has no row to export \(left out: .*without a pair 1\)"):
        exported(tmp_path, "preference", min_reward=0.51)


def test_what_is_left_out_of_several_groups_is_counted_together(tmp_path: Path) -> None:
    scenarios = [make_scenario(name) for name in "abc"]
    groups = [
        make_training_group([1.0, 0.5, low], s) for s, low in zip(scenarios, (0.0, 0.1, 1.0), strict=True)
    ]
    run_of(tmp_path, *groups, scenarios=scenarios)
    rows, said = exported(tmp_path, min_reward=0.75)
    assert (len(rows), left_out(said)) == (4, "below the least reward 5")
    flat = [make_training_group([1.0, 1.0], s) for s in scenarios[:2]]
    _, said = exported(run_of(tmp_path, *flat, groups[2], scenarios=scenarios), "preference")
    assert left_out(said) == "groups without a pair 2"


def test_a_secret_in_the_text_of_the_system_is_found_too(tmp_path: Path) -> None:
    pack = make_pack(system=f"Use {SECRET}.")
    scenarios = [make_scenario("a"), make_scenario("b")]
    group = make_training_group([1.0, 0.0], scenarios[0], pack=pack)
    with pytest.raises(ExportError, match="secret in the prompt 2"):
        exported(run_of(tmp_path, group, packs=[pack], scenarios=scenarios))


def test_two_rollouts_of_one_group_have_each_its_own_lessons(tmp_path: Path) -> None:
    lesson = make_experience(7)
    library = Library(experiences=(lesson,), hash="x")
    group = make_training_group([1.0, 0.0], lessons=[lesson], change=change(1, experiences=()))
    rows, said = exported(run_of(tmp_path, group, library=library))
    assert ids(rows) == ["e1.count-words.r0"]
    assert left_out(said) == "prompt does not match its stamp 1"


def test_a_lesson_that_a_revision_brought_is_known_and_a_prompt_is_that_of_the_last_epoch(
    tmp_path: Path,
) -> None:
    lesson = make_experience(7)
    revision = Revision(epoch=1, library=Library(experiences=(lesson,), hash="x"))
    events = [
        *group_events(make_training_group([1.0, 0.0])),
        ("revision", to_wire(revision)),
        *group_events(make_training_group([1.0, 0.0], epoch=2, lessons=[lesson])),
    ]
    rows, said = exported(write_run(tmp_path, events, epochs=2))
    assert [row["lessons"] for row in rows] == [0, 0, 1, 1]
    assert left_out(said) == "nothing"
    (prompt,), _ = exported(tmp_path, "prompt")
    assert "lesson 7" in prompt["prompt"][0]["content"]


@pytest.mark.parametrize(
    ("status", "reason"), [("ok", "in no scored group"), ("failed", "in no scored group"), ("error", "error")]
)
def test_a_rollout_in_no_group_is_left_out_by_its_own_status(
    tmp_path: Path, status: Any, reason: str
) -> None:
    alone = to_wire(make_rollout(8, status=status))
    _, said = exported(
        write_run(tmp_path, [("rollout", alone), *group_events(make_training_group([1.0, 0.0]))])
    )
    assert left_out(said) == f"{reason} 1"


def test_of_the_groups_that_show_a_column_one_comes_first(tmp_path: Path) -> None:
    scenarios = [make_scenario(name) for name in "abcd"]
    talk = (make_frame("user", kind="user", output="Count."), make_frame("m", kind="model", output="x"))
    frames = {"b": talk, "c": make_rollout().frames, "d": make_rollout().frames}
    groups = [
        make_training_group([1.0, 0.0], s, change=lambda r: replace(r, frames=frames.get(r.scenario_id, ())))
        for s in scenarios
    ]
    folder = run_of(tmp_path, *groups, scenarios=scenarios)
    for shape in ("rollouts", "preference"):
        rows, _ = exported(folder, shape)  # type: ignore[arg-type]
        assert list(dict.fromkeys(row["scenario_id"] for row in rows)) == ["c", "a", "b", "d"]


def test_a_pair_whose_loser_alone_calls_tools_comes_early_too(tmp_path: Path) -> None:
    scenarios = [make_scenario(name) for name in ("plain", "winner", "loser")]

    def calls(rollout: Rollout) -> Rollout:
        wins = rollout.index == 0
        return (
            rollout if (rollout.scenario_id, wins) in (("winner", True), ("loser", False)) else bare(rollout)
        )

    def bare(rollout: Rollout) -> Rollout:
        return replace(rollout, frames=())

    groups = [make_training_group([1.0, 0.0], s, change=calls) for s in scenarios]
    rows, _ = exported(run_of(tmp_path, *groups, scenarios=scenarios), "preference")
    assert [row["scenario_id"] for row in rows] == ["winner", "loser", "plain"]


@pytest.mark.parametrize(
    ("answer", "dated"),
    [
        ("2026-01-01", True),
        ("2026-01-01 10:30", True),
        ("2026-01-01T10:30:00.5Z", True),
        ("2026-01-01 is the day", False),
        ("on 2026-01-01", False),
    ],
)
def test_what_loaders_take_for_a_time_is_told_and_only_of_pairs(
    tmp_path: Path, answer: str, dated: bool
) -> None:
    group = make_training_group(
        [1.0, 0.0], change=lambda r: replace(r, answer=answer + "Z" * r.index, frames=())
    )
    _, said = exported(run_of(tmp_path, group), "preference")
    assert ("every text of 'chosen' is a date" in said) is dated
    _, said = exported(tmp_path)
    assert "is a date" not in said


def test_a_prompt_that_only_a_judge_scores_says_so(tmp_path: Path) -> None:
    rubric = (Criterion(text="It is short."),)
    scenario = make_scenario("a", checks=(), rubric=rubric)
    rows, _ = exported(
        run_of(tmp_path, make_training_group([1.0, 0.0], scenario), scenarios=[scenario]), "prompt"
    )
    assert rows[0]["reward_model"] == {"style": "model", "ground_truth": "[]"}
    assert json.loads(rows[0]["extra_info"]["rubric"]) == [{"text": "It is short.", "weight": 1.0}]


def test_arguments_of_a_tool_are_text_as_it_was_written(tmp_path: Path) -> None:
    group = make_training_group([1.0, 0.0], change=change(0, frames=(make_frame(input={"a": "ü"}),)))
    rows, _ = exported(run_of(tmp_path, group))
    (call,) = rows[0]["messages"][2]["tool_calls"]
    assert call["function"]["arguments"] == '{"a": "ü"}'

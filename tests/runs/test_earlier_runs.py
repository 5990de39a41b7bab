import json
from pathlib import Path
from typing import Any

import pytest
from support.builders import make_scenario
from support.jobs import ScriptedActor, make_job, run_job, three_or_not

from pytest_tfgrpo.core.files import (
    ARENA_PLAN,
    ARENA_RESULT,
    ARENAS,
    JOURNAL,
    MANIFEST,
    PER_EPOCH,
    REPLICATIONS,
    run_folder,
)
from pytest_tfgrpo.report.value import build
from pytest_tfgrpo.runs.earlier_runs import (
    LISTED,
    dev_before,
    earlier_evaluations,
    eval_stamp,
    looks_on_disk,
)
from pytest_tfgrpo.runs.journal.journal import encode
from pytest_tfgrpo.runs.journal.journal_contents import load_run

STAMP = "a" * 64


def write_run(
    out: Path, run_id: str, *, stamps: Any = None, mode: str = "eval", n: int = 4, **header: Any
) -> Path:
    folder = run_folder(out, "demo", run_id)
    folder.mkdir(parents=True)
    value = {
        "settings": {"out": '"stamps":{"eval":"x"}'},
        "stamps": {"eval": STAMP} if stamps is None else stamps,
    }
    (folder / JOURNAL).write_bytes(encode(1, "run", value | header))
    (folder / PER_EPOCH).write_text(json.dumps({"epochs": [{"mode": mode, "rollouts": n}]}))
    return folder


def earlier(out: Path, run_id: str = "r5") -> Any:
    return earlier_evaluations(out, "demo", run_id, STAMP)


def test_older_runs_that_swept_the_same_eval_split_are_counted(tmp_path: Path) -> None:
    write_run(tmp_path, "r1")
    write_run(tmp_path, "r2", stamps={"eval": "b" * 64})
    write_run(tmp_path, "r3", mode="baseline")
    write_run(tmp_path, "r4", n=0)
    write_run(tmp_path, "r5", n=1)
    write_run(tmp_path, "r6")
    assert earlier(tmp_path) == {"earlier": 1, "runs": ["r1"], "variants": ["run r1"]}
    assert earlier(tmp_path, "r9")["runs"] == ["r1", "r5", "r6"]
    assert earlier_evaluations(tmp_path, "another", "r9", STAMP)["earlier"] == 0
    assert earlier_evaluations(None, "demo", "r9", STAMP) == {
        "earlier": 0,
        "runs": [],
        "variants": [],
    }


def test_a_replay_is_no_further_look(tmp_path: Path) -> None:
    write_run(tmp_path, "r1", settings={"actor": "offline"})
    write_run(tmp_path, "r2", settings={"actor": "replay:recording.jsonl"})
    write_run(tmp_path, "r3", settings={"actor": "offline", "teacher": '"settings":{"actor":"replay:x'})
    write_run(tmp_path, "r4", settings={"actor": "offline"}, identities={"actor": "replay:of another"})
    assert earlier(tmp_path)["runs"] == ["r1", "r3", "r4"]


def test_of_many_the_latest_are_named(tmp_path: Path) -> None:
    for n in range(LISTED + 5):
        write_run(tmp_path, f"a{n:03}")
    found = earlier(tmp_path)
    assert found["earlier"] == LISTED + 5
    assert found["runs"][-1] == f"a{LISTED + 4:03}"
    assert len(found["runs"]) == LISTED


@pytest.mark.parametrize("damage", ["", "{}", "not json", '{"n":1}\n', "\x00" * 100])
def test_what_cannot_be_read_counts_for_nothing(tmp_path: Path, damage: str) -> None:
    (write_run(tmp_path, "r1") / JOURNAL).write_text(damage)
    (write_run(tmp_path, "r2") / PER_EPOCH).write_text(damage)
    (write_run(tmp_path, "r3") / PER_EPOCH).unlink()
    assert earlier(tmp_path)["earlier"] == 0


def test_a_header_without_scenarios_counts_for_nothing_and_hides_no_older_run(tmp_path: Path) -> None:
    scenarios = [{"id": "dev-0", "split": "dev"}]
    write_run(tmp_path, "r1", scenarios=scenarios)
    for n, broken in enumerate((5, [5], [{"id": "x"}], [{"split": "eval"}, {"split": "dev"}])):
        write_run(tmp_path, f"r2{n}", stamps={}, scenarios=broken)
    assert earlier(tmp_path)["runs"] == ["r1"]
    for folder in tmp_path.glob("*/runs/*"):
        (folder / MANIFEST).write_text(json.dumps({"status": "incomplete"}))
    assert dev_before(tmp_path, "demo", "latest") == {"dev-0"}


def test_a_run_without_a_stamp_of_its_eval_split_is_told_by_its_scenarios(tmp_path: Path) -> None:
    scenarios = [make_scenario("a", split="eval", stamp="1" * 64), make_scenario("b", split="train")]
    rows = [{"stamp": s.stamp, "split": s.split} for s in scenarios]
    write_run(tmp_path, "r1", stamps={"settings": "x"}, scenarios=rows)
    write_run(tmp_path, "r2", stamps={}, scenarios=rows, settings={"long": "x" * 100_000})
    assert earlier_evaluations(tmp_path, "demo", "r5", eval_stamp(scenarios))["runs"] == ["r1", "r2"]


def test_an_eval_split_is_its_tasks_whatever_they_are_called_and_beside_whom() -> None:
    one, two = (make_scenario(id_, split="eval", stamp=id_[0] * 64) for id_ in ("a1", "b1"))
    again = [
        make_scenario("b2", split="eval", stamp="b" * 64),
        make_scenario("a2", split="eval", stamp="a" * 64),
    ]
    assert eval_stamp([one, two]) == eval_stamp([make_scenario("t"), *again])
    assert eval_stamp([one]) != eval_stamp([one, two])


def test_what_was_found_before_a_run_is_in_its_journal(tmp_path: Path) -> None:
    found = {"evaluations": {"earlier": 2, "runs": ["r1", "r2"]}, "contamination": {"found": 0}}
    job = make_job(ScriptedActor(three_or_not), tmp_path, job_preflight=found)
    run, _ = run_job(job, tmp_path / "run")
    assert run.preflight == load_run(tmp_path / "run").preflight == found
    assert build(run, None)["evaluations"] == {"earlier": 2, "runs": ["r1", "r2"], "looks": 3}


def test_the_dev_split_of_the_run_to_resume_is_that_of_the_newest_open_one(tmp_path: Path) -> None:
    assert dev_before(tmp_path, "demo", "latest") is None
    for n, status in enumerate(("cancelled", "incomplete", "complete")):
        scenarios = [{"id": f"{split}-{n}", "split": split} for split in ("train", "dev", "eval")]
        folder = write_run(tmp_path, f"r{n}", scenarios=scenarios)
        (folder / MANIFEST).write_text(json.dumps({"status": status}))
    assert dev_before(tmp_path, "demo", "latest") == {"dev-1"}
    assert dev_before(tmp_path, "demo", "r2") == {"dev-2"}
    assert dev_before(tmp_path, "demo", "r0") == {"dev-0"}
    assert dev_before(tmp_path, "demo", "r3") is None
    (run_folder(tmp_path, "demo", "r1") / JOURNAL).write_bytes(b"x")
    assert dev_before(tmp_path, "demo", "latest") == {"dev-0"}
    (run_folder(tmp_path, "demo", "r2") / MANIFEST).unlink()
    assert dev_before(tmp_path, "demo", "latest") == {"dev-2"}


def write_arena(task: Path, name: str, sides: Any, arguments: Any, stamp: str = STAMP) -> None:
    folder = task / ARENAS / name
    folder.mkdir(parents=True)
    (folder / ARENA_RESULT).write_text(json.dumps({"sides": sides, "suite_hash": stamp}))
    (folder / ARENA_PLAN).write_text(json.dumps({"arguments": arguments}))


def test_an_arena_counts_as_a_run_of_each_side_unless_it_replays_or_cannot_be_read(tmp_path: Path) -> None:
    task = run_folder(tmp_path, "demo", "r").parents[1]
    two = [{"variant": "v2"}, {"variant": ""}, {"variant": "v1"}]
    write_arena(task, "a0", [{}], {})  # broken, which hides no other
    write_arena(task, "a1", two, {})
    write_arena(task, "a2", two, {"replay": "recording"})
    write_arena(task, "a3", [{"variant": None}], {})
    write_arena(task, "a4", [{"variant": "v3"}], {}, stamp="b" * 64)
    write_arena(task, "a5", [{"variant": "v4"}], [])
    write_arena(task, "a6", [{"variant": "v5"}], {"replay": ""})
    assert earlier(tmp_path) == {"earlier": 2, "runs": ["a1", "a6"], "variants": ["v1", "v2", "v5"]}
    assert looks_on_disk(tmp_path, "demo") == {STAMP: ("v1", "v2", "v5"), "b" * 64: ("v3",)}
    assert looks_on_disk(None, "demo") == {}


def test_variants_are_counted_once_with_those_of_replications_and_of_committed_files(tmp_path: Path) -> None:
    rows = {"epochs": [{"mode": "eval", "rollouts": 1}], "variant": "v1"}
    for name in ("r1", "r2"):
        (write_run(tmp_path, name) / PER_EPOCH).write_text(json.dumps(rows))
    seed = tmp_path / "demo" / REPLICATIONS / "x" / "1"
    (write_run(seed, "r3") / PER_EPOCH).write_text(json.dumps(rows | {"variant": "v2"}))
    committed = {STAMP: ("v0", "v1"), "b" * 64: ("v9",)}
    found = earlier_evaluations(tmp_path, "demo", "r5", STAMP, committed)
    assert found == {"earlier": 3, "runs": ["r1", "r2", "r3"], "variants": ["v0", "v1", "v2"]}

"""Decoys: wrong, not to be guessed, and recognised in every spelling but in nothing else."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_rollout, make_scenario
from support.hostile_trees import TREES, removable
from support.jobs import ScriptedActor, make_job, suite, three_or_not
from support.reached import reached, reaches

from pytest_tfgrpo.core.records import CheckResult, Rollout
from pytest_tfgrpo.core.scenarios import Check, Prompt
from pytest_tfgrpo.engine.attempts import decoys as module
from pytest_tfgrpo.engine.attempts.decoys import Decoys, clear_decoys, decoy, gives
from pytest_tfgrpo.sandbox.paths import FEW_BYTES, FEW_FILES
from pytest_tfgrpo.sandbox.workspace import Workspace
from pytest_tfgrpo.scoring.checks.protocol import CheckContext
from pytest_tfgrpo.scoring.checks.registry import KINDS

ONE = make_scenario("one", stamp="0" * 64)
IN_PYTEST = {"actor": {"name": "python:agent:solve", "identity": {}}}


def evaluated(check: Check, answer: str) -> CheckResult:
    context = CheckContext(answer=answer, frames=(), workspace=Workspace(Path("nowhere")), task=ONE.task())
    return KINDS[check.kind].evaluate(check, context)


numbers = st.floats(allow_nan=False, allow_infinity=False) | st.floats(-1e6, 1e6) | st.integers()


@reaches("a number", "another spelling")
@given(run=st.text(max_size=30), value=numbers)
def test_the_decoy_of_a_number_is_a_number_that_is_wrong(run: str, value: float) -> None:
    expected = str(value)
    made = decoy(run, ONE, expected)
    reached("another spelling", "e" in expected or abs(value) < 1)
    if re.fullmatch(r"-?\d+\.?\d*", expected) and abs(value) >= 1:
        reached("a number")
        assert re.fullmatch(r"\d+\.\d+", made)
        assert len(made) == 10
        assert not evaluated(Check(kind="number", params={"value": value, "rel_tol": 0.1}), made).passed


@reaches("a number", "words")
@given(
    run=st.text(max_size=30), expected=st.text(max_size=30) | numbers.map(str) | st.integers(0, 99).map(str)
)
def test_a_decoy_never_is_the_answer_and_is_recognised(run: str, expected: str) -> None:
    made = decoy(run, ONE, expected)
    reached("words" if " " in made else "a number")
    assert made != expected
    assert not evaluated(Check(kind="exact", params={"value": expected}), made).passed
    for text in (made, f"The answer is {made}.", f'{{"answer": "{made}"}}', made.upper(), f"\n{made}\n"):
        assert gives(text, made)


def test_equal_runs_have_equal_decoys_and_others_have_others() -> None:
    scenarios = [make_scenario(f"s{n}", stamp=f"{n:064}") for n in range(1_000)]
    for expected in ("3", "Paris"):
        first = [decoy("run1", scenario, expected) for scenario in scenarios]
        assert first == [decoy("run1", scenario, expected) for scenario in scenarios]
        other = [decoy("run2", scenario, expected) for scenario in scenarios]
        assert len({*first, *other}) == 2_000


@pytest.mark.parametrize(
    "text",
    ["48213.9075", "48,213.9075", "48 213,9075", "48'213.9075", "48_213.9075", "482139075", "x=48213.9075;"],
)
def test_a_number_is_recognised_in_any_grouping(text: str) -> None:
    assert gives(text, "48213.9075")


@pytest.mark.parametrize(
    "text", ["Bafu Dorime", "bafu-dorime", "bafu_dorime", "(bafu\n  dorime)", "BAFU DORIME"]
)
def test_words_are_recognised_in_any_spacing(text: str) -> None:
    assert gives(text, "bafu dorime")


@pytest.mark.parametrize(
    "text",
    ["", "48213", "48213.9", "148213.9075", "48213.90755", "9075", "48, 213, 9075, 1", "bafu", "dorime bafu"],
)
def test_nothing_else_is_taken_for_one(text: str) -> None:
    assert not gives(text, "48213.9075")
    assert not gives(text, "bafu dorime")


@given(text=st.text(alphabet="0123456789., \n-abcdefghij", max_size=300), run=st.integers(0, 10**6))
def test_what_an_honest_agent_writes_is_not_taken_for_one(text: str, run: int) -> None:
    for expected in ("3", "48213.5", "Paris"):
        assert not gives(text, decoy(str(run), ONE, expected))


@reaches("its end", "its first word")
@given(data=st.data(), run=st.integers(0, 10**6), expected=st.sampled_from(["3", "48213.5", "Paris"]))
def test_parts_of_one_are_not_taken_for_one(data: st.DataObject, run: int, expected: str) -> None:
    made = decoy(str(run), ONE, expected)
    parts = [made[1:], made[:-1], made[-2:], made.split()[0] if " " in made else made[:5], "7", "is"]
    text = " x ".join(data.draw(st.lists(st.sampled_from(parts), max_size=6)))
    reached("its end", made[-2:] in text)
    reached("its first word", " " in made and made.split()[0] in text)
    assert not gives(text, made)


def decoys_in(folder: Path) -> tuple[Decoys, str]:
    job = make_job(ScriptedActor(three_or_not), folder, job_identities=IN_PYTEST)
    return Decoys(job, folder), decoy("run1", job.scenarios[0], "3")


def rollout_of(answer: str) -> Rollout:
    return make_rollout(scenario_id=suite()[0].id, answer=answer)


def test_a_decoy_that_a_lesson_put_into_the_prompt_is_no_evidence(tmp_path: Path) -> None:
    decoys, wanted = decoys_in(tmp_path)
    unused = Workspace(tmp_path / "r0")
    rollout = rollout_of(f"it is {wanted}")
    used = asyncio.run(decoys.used(rollout, Prompt(system="", user="How many?"), unused))
    assert used == "answer"
    for prompt in (Prompt(system=f"Answer {wanted}.", user="How many?"), Prompt(system="", user=wanted)):
        assert asyncio.run(decoys.used(rollout, prompt, unused)) is None
    assert not unused.made


@pytest.mark.parametrize("name", TREES)
def test_a_strange_workspace_is_searched_within_limits(name: str) -> None:
    with removable() as folder:
        decoys, wanted = decoys_in(folder)
        workspace = Workspace(folder / "r0")
        (folder / "victim").mkdir()
        (folder / "victim" / "precious.txt").write_text(wanted)
        TREES[name](workspace.path, folder / "victim")
        found = asyncio.run(decoys.used(rollout_of("3"), Prompt(system="", user=""), workspace))
    assert found == ("hard" if name == "many kinds" else None)  # a hard link is the file itself


@pytest.mark.parametrize("files", [1, FEW_FILES, FEW_FILES + 1])
@pytest.mark.parametrize("size", [0, FEW_BYTES - 100, FEW_BYTES + 1])
def test_a_decoy_is_found_in_small_and_in_large_workspaces(tmp_path: Path, files: int, size: int) -> None:
    decoys, wanted = decoys_in(tmp_path)
    workspace = Workspace(tmp_path / "r0")
    for n in range(files):
        (workspace.path / f"{n}.txt").write_text("x" * size + (f" it is {wanted}" if n == files - 1 else ""))
    prompt = Prompt(system="", user="")
    assert asyncio.run(decoys.used(rollout_of("3"), prompt, workspace)) == f"{files - 1}.txt"
    (workspace.path / f"{files - 1}.txt").unlink()
    assert asyncio.run(decoys.used(rollout_of("3"), prompt, workspace)) is None


@pytest.mark.parametrize(
    ("files", "size", "found"), [(300, 0, True), (4, 999_000, True), (4, 1_000_001, False)]
)
def test_many_files_and_large_ones_are_searched_up_to_a_limit(
    tmp_path: Path, files: int, size: int, found: bool
) -> None:
    decoys, wanted = decoys_in(tmp_path)
    workspace = Workspace(tmp_path / "r0")
    for n in range(files - 1):
        (workspace.path / f"{n:03}.txt").write_text("")
    (workspace.path / "999.txt").write_text("x" * size + f" {wanted}")
    used = asyncio.run(decoys.used(rollout_of("3"), Prompt(system="", user=""), workspace))
    assert used == ("999.txt" if found else None)
    for n in range(files - 1):
        (workspace.path / f"{n:03}.txt").write_text(wanted)
    (workspace.path / "000.txt").write_text("x" * 1_000_001)
    used = asyncio.run(decoys.used(rollout_of("3"), Prompt(system="", user=""), workspace))
    assert used not in (None, "000.txt"), "a file that is too large hides no other"


@pytest.mark.parametrize(("first", "found"), [(5, True), (20, False)])
def test_a_workspace_is_searched_up_to_so_many_bytes_of_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int, found: bool
) -> None:
    monkeypatch.setattr(module, "SEARCHED_BYTES", 20)
    decoys, wanted = decoys_in(tmp_path)
    workspace = Workspace(tmp_path / "r0")
    for n in range(FEW_FILES + 2):
        (workspace.path / f"{n:03}.txt").write_text({0: "x" * first, 1: wanted}.get(n, ""))
    used = asyncio.run(decoys.used(rollout_of("3"), Prompt(system="", user=""), workspace))
    assert used == ("001.txt" if found else None)


def test_the_decoys_of_all_scenarios_lie_in_the_run_until_it_ends(tmp_path: Path) -> None:
    several = (Check(kind="limits", params={"steps": 3}), Check(kind="number", params={"value": 3}))
    scenarios = [*suite(), make_scenario("last", checks=several)]
    job = make_job(ScriptedActor(three_or_not), tmp_path, scenarios=scenarios, job_identities=IN_PYTEST)
    Decoys(job, tmp_path)
    written = json.loads((tmp_path / "answers.json").read_text())
    assert [*written] == [scenario.id for scenario in scenarios]
    assert re.fullmatch(r"\d+\.\d+", written["last"]), "the second check says what is expected"
    assert re.fullmatch(r"\d+\.\d+", decoy("run1", ONE, "3\n"))
    for folder in (tmp_path, tmp_path, None):
        clear_decoys(folder)
        assert not (tmp_path / "answers.json").exists()
    Decoys(replace(job, replayed=True), tmp_path)
    assert not (tmp_path / "answers.json").exists()


def test_no_decoys_where_no_agent_can_read_them(tmp_path: Path) -> None:
    for identities in ({}, {"actor": {"name": "offline"}}, {"actor": {"name": "openai:gpt"}}):
        job = make_job(ScriptedActor(three_or_not), tmp_path, job_identities=identities)
        Decoys(job, tmp_path)
        assert not (tmp_path / "answers.json").exists()


@pytest.mark.parametrize("at", range(FEW_FILES + 1))
def test_a_decoy_is_found_in_each_of_more_than_a_few_files_in_turn(tmp_path: Path, at: int) -> None:
    decoys, wanted = decoys_in(tmp_path)
    workspace = Workspace(tmp_path / "r0")
    for n in range(FEW_FILES + 1):
        (workspace.path / f"{n}.txt").write_text(wanted if n == at else "")
    used = asyncio.run(decoys.used(rollout_of("3"), Prompt(system="", user=""), workspace))
    assert used == f"{at}.txt"

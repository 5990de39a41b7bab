"""Prompts on a page: rendered again from what the journal holds, shown only where they are what was asked."""

import base64
import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from support.builders import make_experience, make_pack
from support.jobs import ScriptedActor, make_job, run_job, three_or_not

from pytest_tfgrpo.core.files import JOURNAL
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.scenarios import Prompt
from pytest_tfgrpo.learning.library.library import of
from pytest_tfgrpo.report.page.grid import grid
from pytest_tfgrpo.report.page.prompts import AskedPrompts
from pytest_tfgrpo.report.page.trajectories import pack
from pytest_tfgrpo.report.value import build
from pytest_tfgrpo.runs.journal.journal import encode, read
from pytest_tfgrpo.runs.journal.journal_contents import load_run
from pytest_tfgrpo.suite.prompt import render_prompt

PACK = make_pack(system="Solve the task.\n\nShow no work.", inject=("Count with care.",))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    lesson = make_experience(summary32="For words in a letter use count.", stamp_signature=PACK.stamp)
    job = make_job(
        ScriptedActor(three_or_not),
        tmp_path,
        epochs=3,
        lesson_dropout=0.5,
        job_packs={PACK.domain: PACK},
        job_library=of([lesson]),
    )
    run_job(job, tmp_path / "run")
    return load_run(tmp_path / "run")


def asked(run: Run) -> Iterator[tuple[dict[str, Any], Prompt | None]]:
    """Yield each group on the page of a run with the prompt that it shows."""
    for chunk in pack(grid(build(run, None), run), run, 10_000_000).chunks:
        part = json.loads(gzip.decompress(base64.b64decode(chunk)))
        for group in part["groups"].values():
            value, text = group["asked"], part["texts"]
            system = "\n".join(text[n] for n in value["system"]) if value else ""
            yield group, value and Prompt(system=system, user=text[value["user"]])


def test_every_group_shows_the_prompt_that_its_rollouts_were_asked(run: Run) -> None:
    with_lessons = 0
    for group, prompt in asked(run):
        assert prompt is not None
        assert {r["prompt"] for r in group["rollouts"]} == {prompt.stamp}
        assert prompt.system.startswith("Solve the task.\n\nShow no work.\n\nCount with care.")
        lines = sum(line.startswith("- [") for line in prompt.system.splitlines())
        assert lines == len(group["rollouts"][0]["lessons"])
        with_lessons += lines > 0
    assert with_lessons >= 4
    assert any(group["rollouts"][0]["withheld"] for group, _ in asked(run))


def test_a_prompt_that_is_not_what_was_asked_is_not_shown(run: Run) -> None:
    other = replace(run, packs=(replace(PACK, system="Changed since."),))
    assert {prompt for _, prompt in asked(other)} == {None}


def test_a_journal_without_packs_still_loads_and_its_page_shows_no_prompt(run: Run, tmp_path: Path) -> None:
    journal = tmp_path / "run" / JOURNAL
    events = list(read(journal))
    assert [row["id"] for row in events[0].data.pop("packs")] == [PACK.id]
    journal.write_bytes(b"".join(encode(e.n, e.event, e.data) for e in events))
    older = load_run(tmp_path / "run")
    assert older == replace(run, packs=())
    assert {prompt for _, prompt in asked(older)} == {None}


@pytest.mark.parametrize("place", ["system", "user"])
@pytest.mark.parametrize(("system", "inject"), [("", ()), ("A\n\n", ()), ("A", ("", "B\n"))])
def test_the_lines_of_a_prompt_are_all_of_it(
    run: Run, system: str, inject: tuple[str, ...], place: Literal["system", "user"]
) -> None:
    changed = replace(PACK, system=system, inject=inject, place=place)
    # a prompt is known by its stamp alone, so what is told must be the whole text to the last line end
    scenario, lesson = run.scenarios[0], run.library.experiences[0]
    for lessons in ((), (lesson,)):
        prompt = render_prompt(changed, scenario, lessons)
        group = run.phases[-1].groups[0]
        rollout = replace(
            group.rollouts[0],
            prompt_stamp=prompt.stamp,
            experiences=tuple(lesson.id for lesson in lessons),
        )
        found = AskedPrompts(replace(run, packs=(changed,))).of(replace(group, rollouts=(rollout,)), scenario)
        assert found is not None
        assert ("\n".join(found.system), found.user) == (prompt.system, prompt.user)

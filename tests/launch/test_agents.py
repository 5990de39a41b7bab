"""The agents of a list: what each runs with, and which runs go on."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.journals import write_run
from support.sweeps import make_run

from pytest_tfgrpo.core.errors import ResumeError, SettingError
from pytest_tfgrpo.core.keys.setting_parsers import task_of
from pytest_tfgrpo.core.settings import Settings, resolve
from pytest_tfgrpo.launch.agents import COMPARISONS, agents_of, compare_agents

TWO = "a = python:m:a, b = python:m:b"


def settings_of(**flags: Any) -> Settings:
    return resolve({"actor": TWO, "task_id": "demo", "out": "out"} | flags, {}, {})


def wrote(root: Path, *runs: str, status: str | None = None, manifest: str = "") -> None:
    """Write runs of agents, each ``NAME/ID``; `manifest` says when they finished."""
    for run in runs:
        name, _, id_ = run.partition("/")
        folder = write_run(root / "out" / f"demo.{name}" / "runs" / id_, [], status=status)
        if status is not None:
            (folder / "manifest.json").write_text(f'{{"finished_at": "{manifest}"}}')


def resumed(root: Path, wanted: str) -> list[tuple[str | None, str | None]]:
    return [(one.resume, one.run_id) for one in agents_of(settings_of(), root, resume=wanted)]


def test_a_single_actor_runs_with_the_settings_as_they_are(tmp_path: Path) -> None:
    settings = settings_of(actor="python:m:a")
    (one,) = agents_of(settings, tmp_path, resume="r", run_id="i")
    assert one.settings is settings
    assert (one.name, one.resume, one.run_id, one.again) == ("", "r", "i", False)


def test_each_agent_has_a_task_files_and_a_share_of_its_own(tmp_path: Path) -> None:
    settings = settings_of(
        library="lib-{agent}.json", concurrency="7", baseline="b-{agent}.json", executor="process:5"
    )
    agents = agents_of(settings, tmp_path, run_id="run1")
    assert [(one.name, one.run_id, one.again) for one in agents] == [
        ("a", "run1-a", True),
        ("b", "run1-b", True),
    ]
    for one in agents:
        own = one.settings
        assert (own["actor"], own["task_id"]) == (f"python:m:{one.name}", f"demo.{one.name}")
        assert (own["library"], own["baseline"]) == (f"lib-{one.name}.json", f"b-{one.name}.json")
        assert (own["concurrency"], own["executor"]) == (3, "process:2")


def test_a_share_is_one_at_least_and_what_is_found_out_stays_so(tmp_path: Path) -> None:
    (one, _) = agents_of(settings_of(concurrency="1"), tmp_path)
    assert one.settings["concurrency"] == 1
    (one, _) = agents_of(settings_of(concurrency="auto"), tmp_path)
    assert (one.settings["concurrency"], one.settings["executor"]) == ("auto", "local")
    *_, last = agents_of(settings_of(actor=f"{TWO}, c = python:m:c", concurrency="7"), tmp_path)
    assert last.settings["concurrency"] == 2


def test_new_runs_share_their_id_and_a_task_without_a_name_has_that_of_the_folder(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    one, other = agents_of(resolve({"actor": TWO}, {}, {}), root)
    assert (one.settings["task_id"], other.settings["task_id"]) == ("shop.a", "shop.b")
    assert one.run_id is not None
    assert other.run_id == f"{one.run_id[:-2]}-b"


@pytest.mark.parametrize(("task", "name", "full"), [("t", "n", "t.n"), ("t" * 64, "nn", "t" * 61 + ".nn")])
def test_a_task_of_an_agent_is_as_long_as_any(task: str, name: str, full: str) -> None:
    assert task_of(task, name) == full


def test_agents_do_not_record_into_one_file(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"record = 'r\.json' .* is one file for 2 agents"):
        agents_of(settings_of(record="r.json"), tmp_path)
    assert agents_of(settings_of(record="r-{agent}.json"), tmp_path)[1].settings["record"] == "r-b.json"
    (one,) = agents_of(settings_of(actor="a = python:m:a", record="r.json"), tmp_path)
    assert one.settings["record"] == "r.json"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("c", r"unknown agent 'c'; the list has a, b"),
        ("long_b", "unknown agent 'long_b'"),
        ("b, ab", r"domain_agents = text = ab \(.*\): unknown agent 'ab'; did you mean 'b'\?"),
        ("a, other = c", "domain_agents = other = c "),
    ],
)
def test_a_domain_names_agents_of_the_list(wanted: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=said):
        agents_of(settings_of(domain_agents=f"text = {wanted}"), tmp_path)
    agents_of(settings_of(domain_agents="text = b"), tmp_path)


@pytest.mark.parametrize("wanted", ["02", "02-a", "02-b"])
def test_a_run_goes_on_for_all_agents_and_one_that_had_not_begun_starts(wanted: str, tmp_path: Path) -> None:
    wrote(tmp_path, "a/01-a", "b/01-b", "a/02-a")
    assert resumed(tmp_path, wanted) == [("02-a", None), (None, "02-b")]


def test_the_latest_run_that_any_agent_has_not_concluded_goes_on(tmp_path: Path) -> None:
    wrote(tmp_path, "a/01-a", "b/02-b")
    wrote(tmp_path, "a/02-a", "a/03-a", "b/03-b", status="complete")
    assert resumed(tmp_path, "latest") == [("02-a", None), ("02-b", None)]
    wrote(tmp_path, "b/04-b", status="complete", manifest="of an earlier end")
    assert resumed(tmp_path, "latest") == [(None, "04-a"), ("04-b", None)]


def test_a_run_that_no_agent_has_is_an_error_that_names_the_latest(tmp_path: Path) -> None:
    with pytest.raises(ResumeError, match=r"no incomplete run of these agents .*\(latest: none\)"):
        resumed(tmp_path, "latest")
    wrote(tmp_path, *(f"a/0{n}-a" for n in range(1, 7)), status="complete")
    with pytest.raises(ResumeError, match=r"no run 'x' .*\(latest: 02, 03, 04, 05, 06\)"):
        resumed(tmp_path, "x")


def test_plain_mode_without_an_output_folder_cannot_go_on(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="needs an output folder"):
        agents_of(resolve({"actor": TWO}, {}, {}), tmp_path, resume="latest")


def test_agents_are_compared_on_a_page_in_the_folder_of_the_suite(tmp_path: Path) -> None:
    runs = {name: replace(make_run(final={"x": [1], "y": [0]}), run_id=f"01-{name}") for name in ("a", "b c")}
    folders = {name: tmp_path / "out" / f"demo.{name}" / "runs" / f"01-{name}" for name in runs}
    lines = compare_agents(runs, folders, task="demo", verbosity=0, start=tmp_path)
    page = tmp_path / "out" / "demo" / COMPARISONS / "01.html"
    assert lines[-2:] == [f"page   out/demo/{COMPARISONS}/01.html", page.as_uri()]
    assert json.loads(page.with_suffix(".json").read_text())["id"] == "01"
    for link in ("./../../demo.a/runs/01-a/report.html", "./../../demo.b%20c/runs/01-b%20c/report.html"):
        assert link in page.read_text()
    elsewhere = compare_agents(runs, folders, task="demo", verbosity=0, start=tmp_path / "out" / "x")
    assert elsewhere[-2] == f"page   ../demo/{COMPARISONS}/01.html"
    every = compare_agents(runs, folders, task="demo", verbosity=-1, start=tmp_path)
    assert (len(every) < len(lines), every[-2:]) == (True, lines[-2:])
    told = compare_agents(runs, dict.fromkeys(runs), task="demo", verbosity=0, start=tmp_path)
    page_of_none = "page   none; the setting out (--tfgrpo-out=out) writes one with the answers side by side"
    assert told == [*lines[:-2], page_of_none]


def test_a_comparison_lies_and_links_in_folders_of_any_name(tmp_path: Path) -> None:
    runs = {name: replace(make_run(final={"x": [1]}), run_id=f"01-{name}") for name in ("a", "b")}
    out = tmp_path / "two\nlines"
    folders = {name: out / os.fsdecode(b"d\xe4mo.") / "runs" / f"01-{name}" for name in runs}
    lines = compare_agents(runs, folders, task="demo", verbosity=0, start=tmp_path)
    assert lines[-2] == f"page   two lines/demo/{COMPARISONS}/01.html"
    assert "./../../d%E4mo./runs/01-b/report.html" in (out / "demo" / COMPARISONS / "01.html").read_text()

"""What ``tfgrpo replicate`` starts, goes on with, refuses and concludes; no run is started here."""

import json
import subprocess
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.cli.runs import replicate
from pytest_tfgrpo.core.errors import JournalError, SettingError
from pytest_tfgrpo.core.settings import resolve

DRY = "==== test ====\n\n==== tfgrpo ====\nthe actor was not called\n  cost: none\n==== no tests ran ====\n"


def project_in(tmp_path: Path, **settings: str) -> Any:
    return SimpleNamespace(
        root=tmp_path, out=tmp_path / "out", task_id="demo", settings=resolve(settings, {}, {})
    )


def replications(project: Any) -> Path:
    folder: Path = project.out / "demo" / "replications"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def carried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Have each seed end at once, the one of a folder with a file ``done`` before; returns what was done."""
    done: list[Any] = []
    project = project_in(tmp_path, seed="3")

    def complete(_: object, out: Path) -> Path | None:
        return out / "run" if (out / "done").exists() else None

    def carry_out(_: object, seed: int, outs: object, args: object) -> Path:
        done.append((seed, args))
        return Path(f"seed-{seed}/run")

    monkeypatch.setattr(replicate, "project_of", lambda arguments: project)
    monkeypatch.setattr(replicate, "new_run_id", lambda: "2026-new")
    monkeypatch.setattr(replicate, "_complete", complete)
    monkeypatch.setattr(replicate, "_carry_out", carry_out)
    monkeypatch.setattr(replicate, "_result", lambda run: run.parent.name)
    monkeypatch.setattr(replicate, "_require_same", lambda results, seed: done.append(dict(results)))
    monkeypatch.setattr(replicate, "_estimate", lambda project, args, runs: [f"{runs} runs, {args}"])
    monkeypatch.setattr(replicate, "_conclude", lambda project, folder, results: [f"{folder.name} {results}"])
    return done


def arguments(seeds: int, *, new: bool = False, dry_run: bool = False) -> Namespace:
    return Namespace(seeds=seeds, new=new, dry_run=dry_run, pytest_args=["-k", "x"])


def test_seeds_follow_that_of_the_settings_and_those_that_are_complete_are_not_run_again(
    tmp_path: Path, carried: list[Any]
) -> None:
    home = tmp_path / "out" / "demo" / "replications"
    for name in ("2026-01", "2026-02"):
        (home / name / "seed-4").mkdir(parents=True)
    (home / "2026-02" / "seed-4" / "done").touch()
    (home / "2026-03").touch()
    dry = list(replicate.replicate(arguments(3, dry_run=True)))
    assert dry == [f"1 of 3 seeds are complete in {home / '2026-02'}", "2 runs, ['-k', 'x']"]
    assert carried == []
    lines = list(replicate.replicate(arguments(3)))
    assert lines[:2] == dry
    assert lines[2:] == [
        f"seed 3 runs; see {home / '2026-02' / 'seed-3' / 'pytest.log'}",
        f"seed 5 runs; see {home / '2026-02' / 'seed-5' / 'pytest.log'}",
        "2026-02 ['seed-3', 'seed-4', 'seed-5']",
    ]
    assert [one for one in carried if isinstance(one, tuple)] == [(3, ["-k", "x"]), (5, ["-k", "x"])]
    assert carried[1] == {3: "seed-3", 4: "seed-4"}, "each new seed is compared with all before it"
    assert carried[3] == {3: "seed-3", 4: "seed-4", 5: "seed-5"}
    assert "0 of 1 seeds are complete" in next(replicate.replicate(arguments(1, new=True)))
    carried.clear()
    assert list(replicate.replicate(arguments(1, new=True)))[-1] == "2026-new ['seed-3']"


def test_seeds_that_are_all_complete_are_concluded_without_an_estimate(
    tmp_path: Path, carried: list[Any]
) -> None:
    folder = tmp_path / "out" / "demo" / "replications" / "2026-02"
    for seed in (3, 4):
        (folder / f"seed-{seed}").mkdir(parents=True)
        (folder / f"seed-{seed}" / "done").touch()
    assert list(replicate.replicate(arguments(2))) == ["2026-02 ['seed-3', 'seed-4']"]
    assert carried == []


def test_one_agent_of_a_list_has_to_be_named(tmp_path: Path) -> None:
    project = project_in(tmp_path, actor="a = offline\nb = nothing")
    with pytest.raises(SettingError, match=r"lists 2; name one, for example .* --tfgrpo-actor=offline$"):
        replicate._require_one_agent(project, ["--tfgrpo-actors=a"])
    replicate._require_one_agent(project, ["-q", "--tfgrpo-actor=a"])
    replicate._require_one_agent(project_in(tmp_path, actor="offline"), [])


def test_an_estimate_is_the_section_of_a_dry_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    said = {"stdout": DRY, "returncode": 0}

    def run(command: list[str], **_: object) -> Any:
        commands.append(command)
        return SimpleNamespace(**{"stderr": " at last\n", **said})

    monkeypatch.setattr(subprocess, "run", run)
    project = project_in(tmp_path, budget_usd="4.5", budget_s="60")
    lines = list(replicate._estimate(project, ["-k", "x"], 2))
    assert lines[:3] == ["each of 2 runs takes:", "  the actor was not called", "    cost: none"]
    assert lines[3:] == ["all seeds together stay within budget_usd 4.5, budget_s 60"]
    assert next(replicate._estimate(project_in(tmp_path), [], 1)) == "the run takes:"
    assert len(list(replicate._estimate(project_in(tmp_path), [], 1))) == 3
    assert commands[0][2:] == [
        "pytest", "--tfgrpo", "-p", "no:cacheprovider", "--tfgrpo-task-id=demo", "--tfgrpo-dry-run", "-k",
        "x",
    ]  # fmt: skip
    for wrong in ({"returncode": 4, "stdout": "x" * 3000 + DRY}, {"stdout": "no section"}):
        said |= wrong
        with pytest.raises(SettingError, match=r"^no learning run is possible: ") as refused:
            list(replicate._estimate(project, [], 1))
        assert str(refused.value).endswith("at last")
        assert len(str(refused.value)) < 2100


@pytest.mark.parametrize(
    ("code", "report", "said"),
    [
        (0, {"status": "complete"}, ""),
        (1, {"status": "complete"}, ""),
        (1, {"status": "incomplete", "reason": "the budget is used up"}, "the budget is used up"),
        (1, None, "its last words"),
        (3, {"status": "incomplete", "reason": "of an earlier try"}, "its last words"),
        (4, None, "its last words"),
    ],
)
def test_a_seed_that_does_not_come_to_an_end_says_why(
    code: int, report: dict[str, str] | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = project_in(tmp_path)
    outs = {0: tmp_path / "out" / "seed-0"}

    def started(command: list[str], *, stdout: Any, stderr: int) -> Any:
        assert stderr == subprocess.STDOUT
        assert command[-2:] == [f"--tfgrpo-out={outs[0]}", "-q"]
        assert "--tfgrpo-seed=0" in command
        stdout.write(b"its last words\n")
        return SimpleNamespace()

    runs = [] if report is None else [tmp_path / "run"]
    monkeypatch.setattr(subprocess, "Popen", started)
    monkeypatch.setattr(replicate, "_wait", lambda process: code)
    monkeypatch.setattr(
        replicate, "_runs", lambda project, out: runs if (out / "pytest.log").exists() else []
    )
    monkeypatch.setattr(replicate, "_report", lambda run: report)
    if not said:
        assert replicate._carry_out(project, 0, outs, ["-q"]) == tmp_path / "run"
        assert (project.out / ".gitignore").is_file()
        return
    with pytest.raises(JournalError) as lost:
        replicate._carry_out(project, 0, outs, ["-q"])
    assert str(lost.value) == f"the run of seed 0 is not complete: {said}; fix that and repeat the command"


@pytest.mark.parametrize("code", [2, -15])
def test_a_seed_that_was_interrupted_or_killed_interrupts_the_command(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: None)
    monkeypatch.setattr(replicate, "_wait", lambda process: code)
    with pytest.raises(KeyboardInterrupt):
        replicate._carry_out(project_in(tmp_path), 0, {0: tmp_path / "out" / "seed-0"}, [])


def test_a_run_that_is_complete_is_not_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[str] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: commands.extend(command))
    monkeypatch.setattr(replicate, "_wait", lambda process: 0)
    monkeypatch.setattr(replicate, "_runs", lambda project, out: [out / "first", out / "last"])
    monkeypatch.setattr(
        replicate, "_report", lambda run: {"status": "complete" if run.name == "last" else ""}
    )
    outs = {0: tmp_path / "out" / "seed-0"}
    assert replicate._carry_out(project_in(tmp_path), 0, outs, []) == outs[0] / "last"
    assert not [word for word in commands if "resume" in word]


def result(**more: Any) -> Any:
    return SimpleNamespace(**{"known": SimpleNamespace(ids=("a",)), **more})


def test_a_run_without_a_gain_or_of_another_method_is_no_replicate(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, Any] = {"none": None, "empty": result(known=SimpleNamespace(ids=())), "whole": result()}
    monkeypatch.setattr(replicate, "load_run", lambda run: run.name)
    monkeypatch.setattr(replicate, "seed_result", found.get)
    assert replicate._result(Path("whole")) is found["whole"]
    for name in ("none", "empty"):
        with pytest.raises(SettingError, match=f"^run {name} has no gain to replicate: it needs train and"):
            replicate._result(Path(name))
    monkeypatch.setattr(replicate, "what_differs", lambda one, other: "" if one == other else "packs")
    replicate._require_same({0: "a", 1: "a"}, 1)  # type: ignore[dict-item]
    with pytest.raises(
        SettingError, match=r"^seeds 1 and 2 do not replicate one method, as these differ: pack"
    ):
        replicate._require_same({0: "b", 1: "a", 2: "b"}, 2)  # type: ignore[dict-item]


def test_the_conclusion_counts_looks_of_runs_library_and_baseline_and_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = project_in(tmp_path)
    folder = replications(project)
    baseline: Any = SimpleNamespace(looks={"split": ("by baseline",)})
    seen: dict[str, Any] = {}

    def concluded(results: object, looks: object) -> dict[str, Any]:
        seen.update(results=results, looks=looks)
        return {"schema": "x"}

    library = SimpleNamespace(looks={"split": ("by library",)})
    monkeypatch.setattr(replicate, "looks_on_disk", lambda out, task: {"split": ("by run",)})
    monkeypatch.setattr(replicate, "find_library", lambda project, name: (library, ()))
    monkeypatch.setattr(replicate, "stored_baseline", lambda settings, root: baseline)
    monkeypatch.setattr(replicate, "replication", concluded)
    monkeypatch.setattr(replicate, "replication_lines", lambda value: [f"lines of {value}"])
    lines = list(replicate._conclude(project, folder, ["r"]))  # type: ignore[list-item]
    assert lines == ["lines of {'schema': 'x'}", f"files  {folder}"]
    assert json.loads((folder / "replication.json").read_text()) == {"schema": "x"}
    assert seen["results"] == ["r"]
    assert set(seen["looks"]["split"]) == {"by run", "by library", "by baseline"}
    monkeypatch.setattr(replicate, "stored_baseline", lambda settings, root: None)
    list(replicate._conclude(project, folder, ["r"]))  # type: ignore[list-item]
    assert set(seen["looks"]["split"]) == {"by run", "by library"}

"""The tfgrpo command, on a project that has learned."""

import argparse
import fcntl
import json
import re
import shutil
from argparse import ArgumentTypeError
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.jobs import ScriptedActor, make_job, run_job, three_or_not
from support.tools import tfgrpo

from pytest_tfgrpo import cli
from pytest_tfgrpo.cli import commands
from pytest_tfgrpo.cli.harvest import arguments as harvest
from pytest_tfgrpo.cli.learn import arguments as learn
from pytest_tfgrpo.cli.live import arguments as live
from pytest_tfgrpo.cli.lookup import find_rollout
from pytest_tfgrpo.cli.loop import arguments as loop
from pytest_tfgrpo.cli.loop.training import arguments as training
from pytest_tfgrpo.cli.parsers import CommandRow, Parser, command_of, whole
from pytest_tfgrpo.cli.suite import arguments as suite
from pytest_tfgrpo.learning.library.library import load_library
from pytest_tfgrpo.production.training.jobs import request
from pytest_tfgrpo.runs.journal.journal import encode
from pytest_tfgrpo.suite.safety import generation

COMMANDS = (
    "init", "safety", "check", "stamp", "runs", "history", "view", "report", "show", "review", "replicate",
    "arena",
    "baseline save", "baseline show", "baseline compare",
    "library show", "library diff", "library promote", "library add", "library remove", "library rebase",
    "lessons", "labels sample", "labels read",
    "record stat", "record verify", "record add", "record prune", "export", "import",
    "harvest init", "harvest env", "harvest verify",
    "live init", "live demo", "live status", "live report", "live evaluate", "live drafts", "live export",
    "live ingest", "live reset",
    "loop init", "loop demo", "loop config", "loop serve", "loop proxy", "loop status", "loop report",
    "loop show", "loop forget", "loop import", "loop opt-out", "loop evidence", "loop candidates",
    "loop train", "loop versions", "loop approve", "loop reject", "loop advance", "loop hold",
    "loop rollback", "loop pin", "loop dashboards", "loop audit", "loop nats-config", "loop bucket-policy",
    "loop tensorzero",
    "learn capture", "learn hook", "learn work", "learn status", "learn show", "learn requeue",
    "learn approve", "learn prune", "learn demo",
    "patterns list", "patterns show", "patterns diff", "patterns search", "patterns lint", "patterns promote",
    "patterns reject", "patterns deprecate", "patterns restore", "patterns trial", "patterns sync",
    "patterns comment", "patterns stats", "patterns escaped",
)  # fmt: skip
TABLES = {
    "harvest": harvest.COMMANDS,
    "learn": learn.COMMANDS,
    "live": live.COMMANDS,
    "loop": loop.COMMANDS,
}
GROUPS = ("baseline", "harvest", "labels", "learn", "library", "live", "loop", "patterns", "record")


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project made by ``tfgrpo init`` that has run once."""
    folder = tmp_path_factory.mktemp("learned")
    assert cli.main(["init", str(folder)]) == 0
    ini = folder / "pyproject.toml"
    ini.write_text(ini.read_text() + 'tfgrpo_task_id = "demo"\ntfgrpo_library = "library.json"\n')
    (folder / "library.json").write_text(EMPTY_LIBRARY)
    with pytest.MonkeyPatch.context() as here:
        here.chdir(folder)
        here.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        assert pytest.main(["-q", "-p", "tfgrpo", "-p", "no:cacheprovider", "--tfgrpo"]) == 0
    return folder


EMPTY_LIBRARY = """{"schema": "tfgrpo.library/1", "lineage": [], "experiences": [],
"hash": "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"}"""


@pytest.fixture
def project(learned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project that has learned, as the working folder."""
    folder = tmp_path / "copy"
    shutil.copytree(learned, folder)
    monkeypatch.chdir(folder)
    return folder


def run_id(project: Path) -> str:
    (folder,) = (project / "out" / "demo" / "runs").iterdir()
    return folder.name


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_command_has_help(command: str) -> None:
    out = tfgrpo(*command.split(), "--help")
    assert out.startswith(f"usage: tfgrpo {command}".rstrip())
    assert max(map(len, out.splitlines())) <= 80


def test_the_list_of_commands_above_is_complete() -> None:
    def listed(*argv: str) -> list[str]:
        _, _, commands = tfgrpo(*argv, "--help").partition("  COMMAND\n")
        return re.findall(r"^    ([\w-]+)", commands, re.MULTILINE)

    found = [
        " ".join([name, *more])
        for name in listed()
        for more in ([[sub] for sub in listed(name)] if name in GROUPS else [[]])
    ]
    assert sorted(found) == sorted(COMMANDS)


def test_the_tables_say_of_each_command_what_its_function_does() -> None:
    def check(parser: Parser, rows: Sequence[CommandRow]) -> None:
        known = _choices(parser)
        assert set(known) == {name for row in rows for name in (row.name, *row.aliases)}
        for row in rows:
            command = known[row.name]
            assert command.module == row.module
            command.load()
            assert command.description == row.about
            if row.name in TABLES:
                check(command, TABLES[row.name])

    check(cli.parser(), commands.COMMANDS)


def test_each_command_calls_a_function_that_says_what_its_help_says() -> None:
    called = dict(_called(cli.parser()))
    assert len(called) > 50
    assert {work: (command_of(work).__doc__ or "").partition("\n")[0] for work in called} == called


def _called(parser: Parser) -> Iterator[tuple[str, str]]:
    parser.load()
    if work := parser.get_default("work"):
        yield work, str(parser.description)
    groups = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    for command in (command for group in groups for command in group.choices.values()):
        yield from _called(command)


def test_choices_that_help_spells_out_are_those_of_the_work() -> None:
    assert suite.SUITES == generation.SUITES
    assert training.PRIORITIES == request.PRIORITIES


def test_a_folder_of_commands_that_was_taken_away_takes_its_commands_with_it() -> None:
    assert {row.name for row in commands.listed({"runs", "suite"})} == {
        row.name
        for row in commands.COMMANDS
        if row.name not in ("arena", "harvest", "learn", "live", "loop", "patterns")
    }


def test_only_the_command_that_is_called_is_loaded() -> None:
    parser = cli.parser()
    parser.parse_args(["stamp"])
    known = _choices(parser)
    waiting = {name for name, command in known.items() if command.module}
    assert waiting == known.keys() - {"stamp"}


def _choices(parser: Parser) -> dict[str, Parser]:
    (group,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return dict(group.choices)


def test_the_version_is_told() -> None:
    assert re.fullmatch(r"pytest-tfgrpo \d+\.\d+\.\d+\n", tfgrpo("--version"))


@pytest.mark.parametrize(
    "argv", [[], ["nope"], ["show"], ["baseline"], ["library", "promote"], ["runs", "-x"]]
)
def test_wrong_usage_is_exit_code_2(argv: list[str]) -> None:
    assert "usage: tfgrpo" in tfgrpo(*argv, code=2)


def test_a_bug_is_exit_code_3_with_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_tfgrpo.cli.suite.init.start", lambda *_, **__: 1 / 0)
    err = tfgrpo("init", code=3)
    assert "ZeroDivisionError" in err
    assert "this is a bug" in err


def test_so_is_one_while_a_command_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_tfgrpo.cli.parsers.import_module", lambda name: 1 / 0)
    assert "this is a bug" in tfgrpo("init", code=3)


def test_an_interrupt_is_exit_code_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pytest_tfgrpo.cli.suite.init.start", interrupted)
    tfgrpo("init", code=130)


def test_a_run_that_goes_on_is_listed_as_running_and_one_killed_after_it_was_resumed_as_killed(
    project: Path,
) -> None:
    journal = project / "out/demo/runs" / run_id(project) / "journal.jsonl"
    whole = journal.read_bytes()
    with journal.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert tfgrpo("runs").splitlines()[1].split()[1:] == ["running", "-", "-", "-", "-"]
    journal.write_bytes(whole + encode(whole.count(b"\n") + 1, "resume", {"versions": {}}))
    assert tfgrpo("runs").splitlines()[1].split()[1:] == ["killed", "-", "-", "-", "-"]
    journal.write_bytes(whole)
    assert tfgrpo("runs").splitlines()[1].split()[1] == "complete"


def test_other_tasks_and_folders_have_their_own_runs(project: Path) -> None:
    assert tfgrpo("runs", "--task-id", "other").startswith("no runs of task 'other' under ")
    Path("out").rename("elsewhere")
    assert "no runs of task 'demo'" in tfgrpo("runs")
    assert "complete" in tfgrpo("runs", "--out", "elsewhere")


def test_show_finds_a_rollout_by_the_end_of_its_id(project: Path) -> None:
    out = tfgrpo("show", "e1.roll-1.r0")
    assert out.startswith(f"rollout {run_id(project)}.e1.roll-1.r0: train, epoch 1, scenario roll-1\n")
    assert "gt_score" in out
    assert 'Call the roll of "Zoe, Adam, Mira, Kai".' in out
    assert tfgrpo("show", f"{run_id(project)}.e1.roll-1.r0") == out


@pytest.mark.parametrize(("wanted", "listed"), [("r0", "e1.swing-1.r0"), ("roll-1.r0", "e2.roll-1.r0")])
def test_an_ambiguous_rollout_is_listed(project: Path, wanted: str, listed: str) -> None:
    err = tfgrpo("show", wanted, code=1)
    assert f"{run_id(project)}.{listed}" in err
    assert len(err.splitlines()) <= 12


def test_show_finds_a_rollout_whose_group_never_became_whole(project: Path) -> None:
    journal = Path(f"out/demo/runs/{run_id(project)}/journal.jsonl")
    first_rollout = [b'"event":"rollout"' in line for line in journal.read_bytes().splitlines()].index(True)
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[: first_rollout + 1]))
    out = tfgrpo("show", "r0")
    assert "gt_score" not in out


def test_runs_are_named_by_the_end_of_their_id(project: Path) -> None:
    full = run_id(project)
    report = tfgrpo("report")
    assert tfgrpo("report", full[-4:]) == tfgrpo("report", full) == report
    shutil.copytree(f"out/demo/runs/{full}", f"out/demo/runs/00{full[-4:]}")
    err = tfgrpo("report", full[-4:], code=1)
    assert f"matches several runs: 00{full[-4:]}, {full}" in err
    err = tfgrpo("report", "../../etc", code=1)
    assert f"no run '../../etc' of task 'demo' under {project / 'out'} (latest: 00" in err


def test_a_baseline_that_is_not_there_says_how_to_make_it(project: Path) -> None:
    err = tfgrpo("baseline", "show", "main", code=1)
    assert "tfgrpo baseline save" in err


def test_the_library_is_shown_as_of_any_epoch(project: Path) -> None:
    final = load_library(Path("out/demo/library.json"))
    out = tfgrpo("library", "show")
    assert final.experiences
    assert out.splitlines()[0] == f"library {final.hash[:12]}, lessons: {len(final.experiences)}"
    assert all(e.summary32 in out for e in final.experiences)
    assert tfgrpo("library", "show", f"{run_id(project)}@2") == out
    assert tfgrpo("library", "show", "out/demo/library.json") == out
    assert "lessons: 0" in tfgrpo("library", "show", "latest@0")
    err = tfgrpo("library", "show", "latest@7", code=1)
    assert "there is no epoch '7' in run" in err


def test_a_library_is_reviewed_and_promoted(project: Path) -> None:
    final = load_library(Path("out/demo/library.json"))
    out = tfgrpo("library", "diff", "latest").splitlines()
    assert out[0] == "--- committed  4f53cda18c2b, lessons: 0"
    assert len([line for line in out if line.startswith("+ ")]) == len(final.experiences)
    count = len(final.experiences)
    told = tfgrpo("library", "promote", "latest")
    assert told.startswith(f"wrote {project / 'library.json'}, lessons: {count} (+{count} ~0 -0)")
    promoted = load_library(Path("library.json"))
    assert replace(promoted, looks={}) == final
    assert len(promoted.looks) == 1
    assert len(tfgrpo("library", "diff", "latest").splitlines()) == 2
    backwards = tfgrpo("library", "diff", "latest", "latest@0").splitlines()
    assert len([line for line in backwards if line.startswith("- ")]) == count


def test_a_run_that_is_not_whole_is_not_promoted(project: Path) -> None:
    journal = Path(f"out/demo/runs/{run_id(project)}/journal.jsonl")
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    err = tfgrpo("library", "promote", "latest", code=1)
    assert "is incomplete, so its library is not promoted" in err
    assert Path("library.json").read_text() == EMPTY_LIBRARY


def test_promoting_without_a_library_setting_says_what_to_set(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFGRPO_LIBRARY", "none")
    for command in (["promote", "latest"], ["rebase"]):
        err = tfgrpo("library", *command, code=1)
        assert "library is 'none'" in err


def test_promoting_a_run_whose_gate_failed_warns(project: Path) -> None:
    path = Path(f"out/demo/runs/{run_id(project)}/report.json")
    report = json.loads(path.read_text())
    report["gate"]["outcome"] = "fail"
    path.write_text(json.dumps(report))
    out = tfgrpo("library", "promote", "latest")
    assert f"warning: the gate of run {run_id(project)} failed" in out


def test_a_changed_pack_is_stamped_and_the_library_rebased(project: Path) -> None:
    tfgrpo("library", "promote", "latest")
    tfgrpo("stamp", "--check")
    system = Path("prompt-packs/starter/system.md")
    system.write_text(system.read_text() + "Be brief.\n")
    err = tfgrpo("stamp", "--check", code=1)
    assert str(system) in err
    assert tfgrpo("stamp") == f"stamped  {project / 'prompt-packs' / 'starter'}\n"
    assert tfgrpo("stamp", "prompt-packs/starter") == "unchanged  prompt-packs/starter\n"
    tfgrpo("stamp", "--check", "prompt-packs")

    before = load_library(Path("library.json"))
    count = len(before.experiences)
    assert tfgrpo("library", "rebase").endswith(f"stamped {count} of {count} lessons again\n")
    after = load_library(Path("library.json"))
    assert {e.stamp_signature for e in after.experiences}.isdisjoint(
        e.stamp_signature for e in before.experiences
    )
    assert [e.summary32 for e in after.experiences] == [e.summary32 for e in before.experiences]
    assert tfgrpo("library", "rebase").endswith(f" stamped 0 of {count} lessons again\n")


def test_stamp_names_every_pack_that_is_wrong(project: Path) -> None:
    shutil.copytree("prompt-packs/starter", "prompt-packs/second")
    for name in ("starter", "second"):
        Path(f"prompt-packs/{name}/system.md").write_text("changed")
    manifest = Path("prompt-packs/second/manifest.json")
    manifest.write_text(manifest.read_text().replace('"starter"', '"second"'))
    err = tfgrpo("stamp", "--check", code=1)
    assert "starter/system.md" in err
    assert "second/system.md" in err
    packs = ("prompt-packs/starter", "prompt-packs/second")
    assert tfgrpo("stamp", *packs) == "".join(f"stamped  {pack}\n" for pack in packs)
    err = tfgrpo("stamp", "fixtures", code=1)
    assert "fixtures is not a prompt pack and contains none" in err


@pytest.mark.parametrize("empty", [False, True])
def test_a_project_without_packs_has_no_stamp_to_check(project: Path, empty: bool) -> None:
    shutil.rmtree("prompt-packs")
    if empty:
        Path("prompt-packs").mkdir()
    told = f"no prompt pack in {project / 'prompt-packs'}: the built-in one is in use\n"
    assert tfgrpo("stamp", "--check") == told
    assert "contains none" in tfgrpo("stamp", code=1)
    assert "contains none" in tfgrpo("stamp", "--check", "prompt-packs", code=1)


def test_a_folder_of_packs_that_is_set_must_be_there(project: Path) -> None:
    Path("pyproject.toml").write_text('[tool.pytest.ini_options]\ntfgrpo_prompt_packs = "pax"\n')
    assert "pax is not a prompt pack and contains none" in tfgrpo("stamp", "--check", code=1)


def test_experiences_are_listed_and_exported_with_the_keys_of_the_source(project: Path) -> None:
    stored = Path("out/demo/experiences.jsonl").read_text().splitlines()
    out = tfgrpo("lessons", "--all")
    listed = [line for line in out.splitlines() if line.startswith(("do ", "avoid "))]
    exported = [json.loads(line) for line in tfgrpo("lessons", "--export").splitlines()]
    assert listed
    assert len(listed) == len(exported) <= len(stored)
    assert {"promptPackId", "stampSignature", "toolStats", "groupId"} <= exported[0].keys()
    domain = exported[0]["domain"]
    assert f" {domain}: " in tfgrpo("lessons", "--domain", domain)
    assert tfgrpo("lessons", "--domain", "none").startswith("no lessons of domain 'none'; domains with")


def test_without_any_run_every_command_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "run pytest --tfgrpo" in tfgrpo("runs")
    for argv in (["report"], ["baseline", "save", "x"], ["library", "show"], ["lessons"]):
        err = tfgrpo(*argv, code=1)
        assert "run pytest --tfgrpo" in err
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("lesons",), "^tfgrpo: error: no command 'lesons'; did you mean 'lessons'?$"),
        (("baseline", "shwo", "x"), "^tfgrpo baseline: error: no command 'shwo'; did you mean 'show'?$"),
        (("export", "--format", "row"), "invalid choice: 'row' \\(choose from .*\\)"),
        (("report", "--htlm", "x"), "tfgrpo report: error: .*--htlm; did you mean '--html'?"),
        (("baseline", "compare", "a", "b", "--margn=1"), "--margn=1; did you mean '--margin'?"),
        (("lessons", "--colour"), "unrecognized arguments: --colour; see 'tfgrpo lessons --help'$"),
        (("runs", "extra"), "unrecognized arguments: extra; see 'tfgrpo runs --help'$"),
        (("init", "--ci", "github"), "--ci; see 'tfgrpo init --help'$"),
        (
            ("compare", "a", "--csv"),
            "no command 'compare'; .*--compare RUN .* pytest --tfgrpo-actor=A,B runs",
        ),
        (("review",), "^  --marks: marks that reviewers saved from the report page"),
        (
            ("run",),
            "no command 'run'; pytest --tfgrpo runs and learns, pytest tests the eval",
        ),
        (("prices",), "no command 'prices'; tfgrpo report -v says what"),
        (("library", "rm"), "no command 'rm'; delete lessons from the library file; "),
        (("lint",), "no command 'lint'; did you mean 'check'?$"),
        (("zzz",), "no command 'zzz'; 'tfgrpo --help' lists them$"),
    ],
)
def test_a_misspelt_word_has_its_nearest(
    capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], said: str
) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(argv)
    assert end.value.code == 2
    usage, *_, error = capsys.readouterr().err.splitlines()
    assert usage.startswith("usage: tfgrpo")
    assert re.search(said.replace("?", r"\?"), error), error


def test_a_python_that_guesses_the_command_itself_is_not_doubled(capsys: pytest.CaptureFixture[str]) -> None:
    message = "argument COMMAND: invalid choice: 'shwo', maybe you meant 'show'? (choose from show, runs)"
    with pytest.raises(SystemExit):
        cli.parser().error(message)
    assert capsys.readouterr().err.endswith("error: no command 'shwo'; did you mean 'show'?\n")


def test_a_short_id_finds_the_rollout_of_the_latest_run(tmp_path: Path) -> None:
    for n in (1, 2, 3):
        job = make_job(ScriptedActor(three_or_not), tmp_path, job_run_id=f"2026-{n}")
        run_job(job, tmp_path / "out" / "demo" / "runs" / f"2026-{n}")
    place: Any = SimpleNamespace(out=tmp_path / "out", task_id="demo")
    found = find_rollout(place, "e1.train-0.r0")
    assert found.rollout.run_id == "2026-3"


@pytest.mark.parametrize(
    ("text", "least", "problem"),
    [
        ("0", 0, None),
        ("9" * 18, 1, None),
        ("0", 1, "must be a whole number from 1 on, not '0'"),
        ("-1", 0, "must be a whole number from 0 on, not '-1'"),
        ("1.5", 0, "must be a whole number from 0 on, not '1.5'"),
        ("9" * 19, 0, f"must be a whole number of at most 18 digits from 0 on, not '{'9' * 19}'"),
        ("9" * 5000, 0, f"must be a whole number of at most 18 digits from 0 on, not '{'9' * 5000}'"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_whole_number_is_read_or_refused(text: str, least: int, problem: str | None) -> None:
    if problem is None:
        assert whole(text, least) == int(text)
        return
    with pytest.raises(ArgumentTypeError) as refused:
        whole(text, least)
    assert str(refused.value) == problem

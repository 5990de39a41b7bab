"""The command ``tfgrpo harvest``: from a repository's history to scenarios that the true fix solves."""

import re
import time
from pathlib import Path

import pytest
from support.harbor import attempt, other_files, scenarios_in
from support.repositories import Repository, everything
from support.terminals import watching
from support.tools import require_tool, run_pytest, tfgrpo

from pytest_tfgrpo.core.file_writing import write_json
from pytest_tfgrpo.sandbox.programs.environments import Environment, stamp_of, to_file

BECOMES = {
    "report-a-mean-of-zero-where-there-was-no": "skipped",
    "describe-how-prices-are-written": "skipped",
    "call-the-goods-of-a-cart-lines": "skipped",
    "revert-call-the-goods-of-a-cart-lines": "skipped",
    "add-quantities-where-an-item-is-put-into": "validated",
    "read-prices-with-thousands-separators": "validated",
    "sum-up-carts-in-one-pass": "validation_failed",
    "round-discounted-prices-half-up-as-the-t": "validated",
    "reserve-all-items-of-an-order-or-none-of": "validated",
    "fix-slugs": "validated",
    "weigh-goods-in-kilograms-and-ship-from-5": "validated",
    "draw-the-ticket-that-wins-the-raffle": "validation_failed",
}
LINE = re.compile(
    r" *(?P<done>\d+)/12  (?P<status>\w+) +(?P<tests>\d+) tests? +(?P<seconds>[\d.]+) s  "
    r"(?P<id>[a-z0-9-]+)-[0-9a-f]{12}(?:  (?P<why>.*?))?(?:  \(about .* left\))?"
)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The example, harvested: its folder, and what the harvest printed."""
    for program in ("git", "bwrap"):
        require_tool(program)
    folder = tmp_path_factory.mktemp("example")
    tfgrpo("init", "--example", "history", str(folder))
    return folder, tfgrpo("harvest", *words_for(folder), "--jobs", "2")


def words_for(folder: Path) -> list[str]:
    """Return what names the history of the example and its suite."""
    return ["--repo", str(folder / "shop"), "--from-git", "FIRST..main", "--into", str(folder / "suite")]


@pytest.mark.timeout(400)
def test_six_fixes_of_the_example_become_scenarios_that_the_true_fix_solves_and_doing_nothing_does_not(
    example: tuple[Path, str],
) -> None:
    folder, printed = example
    check_lines(printed.splitlines())
    before = everything(folder / "suite")
    again = tfgrpo("harvest", *words_for(folder))
    assert again == "nothing is new in FIRST..main; --retry does again what failed\n"
    assert everything(folder / "suite") == before
    for actor, summary, score in (("reference", "6 passed", "1.000"), ("nothing", "6 failed", "0.000")):
        done = run_pytest(folder, "suite", f"--tfgrpo-actor={actor}")
        assert summary in done.stdout.splitlines()[-1], done.stdout + done.stderr
        assert re.search(rf"^epoch1-eval +6 +0 +{score}", done.stdout, re.MULTILINE)


@pytest.mark.timeout(400)
def test_six_fixes_become_tasks_whose_own_scripts_give_1_to_the_solution_and_0_to_nothing_and_come_back_equal(
    example: tuple[Path, str], tmp_path: Path
) -> None:
    suite, tasks, back = example[0] / "suite", tmp_path / "tasks", tmp_path / "back"
    lines = tfgrpo("export", "harbor", str(suite), "--into", str(tasks)).splitlines()
    assert lines[0].startswith("6 tasks in ")
    assert lines[1] == (
        "kept for the way back, without effect in a container: domain (6), split (6), tags (6), "
        "changes of the check (6)"
    )
    assert len(lines) == 3
    for task in tasks.iterdir():
        for script, reward in (("/solution/solve.sh", "1\n"), ("true", "0\n")):
            given, output = attempt(task, tmp_path / f"{task.name}-{reward.strip()}", script)
            assert given == reward, output
    assert tfgrpo("import", "harbor", str(tasks), "--into", str(back)).count("\n") == 3
    assert scenarios_in(back) == scenarios_in(suite)
    kept = {name: data for name, data in other_files(suite).items() if name != "harvest.jsonl"}
    assert other_files(back) == kept
    assert tfgrpo("harvest", "verify", str(back)).splitlines()[-1] == "6 scenarios proven"


def check_lines(printed: list[str]) -> None:
    """Check that each change has a line with what became of it."""
    *lines, last = printed
    found = [match for line in lines if (match := LINE.fullmatch(line))]
    assert {match["id"]: match["status"] for match in found} == BECOMES
    assert sorted(int(match["done"]) for match in found) == list(range(1, 13))
    assert all((int(match["tests"]) > 0) == (match["status"] == "validated") for match in found)
    why = {match["id"]: match["why"] or "" for match in found}
    assert why["sum-up-carts-in-one-pass"].startswith("test_failure: passes before the fix")
    assert why["draw-the-ticket-that-wins-the-raffle"].startswith("test_failure: flaky: tests/test_raffle.py")
    assert any(line.endswith(" left)") for line in lines)
    assert last.startswith("4 skipped, 6 validated, 2 validation_failed; next: pytest ")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository with one fix, in the working folder."""
    require_tool("git")
    monkeypatch.chdir(tmp_path)
    repository = Repository(tmp_path / "shop")
    repository.commit({"a.py": "x = 1\n", "tests/test_a.py": ""}, "Begin")
    repository.commit({"a.py": "x = 2\n", "tests/test_a.py": "def test_a(): assert 0\n"}, "Fix it")
    return repository


RANGE = ("--from-git", "main~1..main", "--into", "suite")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--repo", "shop", "--from-git", "nope..main", "--into", "suite"], "there is no commit 'nope'"),
        (["--repo", "shop", "--from-git", "a...b", "--into", "suite"], "three dots"),
        (["--repo", "elsewhere", *RANGE], "elsewhere"),
    ],
)
def test_a_bad_range_and_no_repository_are_errors_that_write_nothing(
    shop: Repository, argv: list[str], message: str
) -> None:
    assert message in tfgrpo("harvest", *argv, code=1)
    assert not Path("suite").exists()


def test_a_suite_that_is_none_cannot_be_verified(shop: Repository) -> None:
    assert "holds no harvested scenario" in tfgrpo("harvest", "verify", "shop", code=1)
    assert not Path("shop/harvest.jsonl").exists()


def test_an_environment_that_cannot_be_built_is_named(
    shop: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    environment = Environment(python="3.1")
    (tmp_path / "suite/environments").mkdir(parents=True)
    write_json(tmp_path / f"suite/environments/{stamp_of(environment)}.json", to_file(environment))
    error = tfgrpo("harvest", "env", "suite", "--check-sandbox", "none", code=1)
    assert "1 of 1 environment could not be built" in error


def test_a_first_recipe_is_written_once_and_can_be_harvested_with(shop: Repository) -> None:
    assert (
        tfgrpo("harvest", "init", "--repo", "shop") == "wrote  shop/harvest.toml: review it, then harvest\n"
    )
    text = (shop.folder / "harvest.toml").read_text()
    assert '[folder."."]\n' in text
    assert '\nrunner = "pytest"\n' in text
    assert "exists; review it" in tfgrpo("harvest", "init", "--repo", "shop", code=1)
    assert "1 candidate" in tfgrpo("harvest", "--repo", "shop", *RANGE, "--dry-run")
    tfgrpo("harvest", "init", "--repo", "shop", "--force", "--commit", "main~1")


SLOW = "import time\n\nfrom a import x\n\ndef test_a():\n    time.sleep({})\n    assert x == 2\n"


def slow_fix(tmp_path: Path, seconds: float) -> list[str]:
    """Make a repository with one fix, whose test takes its time; return the words that harvest it."""
    require_tool("git")
    repository = Repository(tmp_path / "shop")
    repository.commit({"a.py": "x = 1\n", "tests/test_a.py": ""}, "Begin")
    repository.commit({"a.py": "x = 2\n", "tests/test_a.py": SLOW.format(seconds)}, "Fix it")
    words = ["--repo", "shop", "--from-git", "main~1..main", "--into", "suite"]
    return ["harvest", *words, "--check-sandbox", "none"]


PROGRAM = ("-c", "import sys; from pytest_tfgrpo.cli import main; sys.exit(main(sys.argv[1:]))")


def test_a_terminal_has_a_live_line_until_the_candidate_is_done(tmp_path: Path) -> None:
    words = slow_fix(tmp_path, 1.5)
    with watching(tmp_path, words, terminal=True, program=PROGRAM) as run:
        run.wait_for(lambda shown: re.search(r"^1/1  run 2 of 10, \d+ s  fix-it-[0-9a-f]{12}$", shown, re.M))
        shown = run.end()
    warning, validated, summary = shown.strip().splitlines()
    assert warning.startswith("warning: ")
    assert validated.startswith("1/1  validated                1 test ")
    assert summary.startswith("1 validated; next: pytest suite")
    assert run.process.returncode == 0


def test_a_pipe_has_a_line_a_candidate(tmp_path: Path) -> None:
    with watching(tmp_path, slow_fix(tmp_path, 0.7), terminal=False, program=PROGRAM) as run:
        run.end()
    assert [line[:13] for line in run.written.splitlines()[1:]] == ["1/1  validate", "1 validated; "]


def test_a_harvest_whose_time_is_up_ends_its_programs_and_with_1(tmp_path: Path) -> None:
    words = slow_fix(tmp_path, 100)
    began = time.monotonic()
    with watching(tmp_path, [*words, "--budget-s", "5"], terminal=True, program=PROGRAM) as run:
        run.end()
    last = run.written.strip().splitlines()[-1]
    assert last.endswith(
        "tfgrpo: stopped after 5 s, before one was finished: 1 candidate is left; set --budget-s higher"
    )
    assert run.process.returncode == 1
    assert time.monotonic() - began < 60
    assert not list((tmp_path / "suite").glob("*.yaml"))

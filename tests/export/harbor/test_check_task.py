"""The script that checks a task, part by part; the slow tests run it whole, in a sandbox."""

import json
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.export.harbor import check_task


@pytest.mark.parametrize(
    ("credit", "passed", "expected", "missed"),
    [
        ("all", "abk", 1.0, ""),
        ("share", "abk", 1.0, ""),
        ("share", "ak", 0.5, "b"),
        ("share", "k", 0.0, "a, b"),
        ("share", "ab", 0.0, "k"),
        ("all", "ak", 0.0, "b"),
        ("all", "", 0.0, "a, b, k"),
    ],
)
def test_the_credit_of_tests(credit: str, passed: str, expected: float, missed: str) -> None:
    task = {"fail_to_pass": ["a", "b"], "pass_to_pass": ["k"], "credit": credit}
    reason = f"did not pass: {missed}" if missed else "all listed tests passed"
    assert check_task.judged(task, set(passed)) == (expected, reason)


def said(*rows: tuple[str, str, str], end: bytes = b"") -> Any:
    return check_task._passed(b"".join(json.dumps(row).encode() + b"\n" for row in rows) + end)


def phases(name: str, *outcomes: str) -> list[tuple[str, str, str]]:
    return [(name, when, one) for when, one in zip(("setup", "call", "teardown"), outcomes, strict=False)]


def test_a_test_has_passed_whose_three_phases_did_and_of_which_none_failed() -> None:
    began = ("", "began", "")
    rows = [
        *(*phases("good", "passed", "passed", "passed"), *phases("half", "passed", "passed")),
        *(*phases("bad", "passed", "failed", "passed"), *phases("late", "passed", "passed", "failed")),
        *(*phases("again", "passed", "rerun"), *phases("again", "passed", "passed", "passed")),
        *(*phases("twice", "passed", "passed", "passed"), *phases("twice", "passed", "failed", "passed")),
        *(phases("skipped", "skipped", "passed", "passed")),
    ]
    assert said(began, *rows, end=b'no json\n["good", "call", "fai') == {"good", "again"}
    assert said(began) == set()
    assert said(*rows) is None


def archive(path: Path, fill: Callable[[tarfile.TarFile], object]) -> None:
    with tarfile.open(path, "w:gz") as file:
        fill(file)


def test_an_archive_is_laid_in_place_of_what_stands_in_its_way(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("new")
    (tmp_path / "run.sh").chmod(0o750)

    def fill(file: tarfile.TarFile) -> None:
        for name in ("a/b/run.sh", "folder", "link", "led/run.sh"):
            file.add(tmp_path / "run.sh", name)
        for kind, name in ((tarfile.SYMTYPE, "a/leads"), (tarfile.DIRTYPE, "none"), (tarfile.FIFOTYPE, "p")):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "b/run.sh"
            file.addfile(member)

    archive(tmp_path / "x.tar.gz", fill)
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    (tree / "folder").mkdir(parents=True)
    (tree / "folder" / "old").write_text("old")
    outside.mkdir()
    (outside / "kept").write_text("kept")
    (tree / "a").write_text("a file in the way")
    (tree / "link").symlink_to(outside / "kept")
    (tree / "led").symlink_to(outside)
    check_task._lay(str(tmp_path / "x.tar.gz"), str(tree))
    assert [(p.name, p.read_text()) for p in outside.iterdir()] == [("kept", "kept")]
    for name in ("a/b/run.sh", "folder", "link", "led/run.sh"):
        assert ((tree / name).read_text(), (tree / name).stat().st_mode & 0o777) == ("new", 0o750)
        assert not (tree / name).is_symlink()
    assert str((tree / "a" / "leads").readlink()) == "b/run.sh"
    assert sorted(path.name for path in tree.iterdir()) == ["a", "folder", "led", "link"]


def test_pytest_runs_the_files_that_are_there_from_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    for name in ("in/test_a.py", "test_b.py"):
        (tmp_path / name).write_text("")
    plugins: set[str] = set()
    monkeypatch.setattr(check_task.importlib.util, "find_spec", lambda name: name in plugins or None)
    request = {
        "alone": False,
        "tree": str(tmp_path),
        "files": ["in/test_a.py", "test_b.py", "gone.py"],
    }
    start = str(tmp_path / "in")
    plain = check_task._arguments(request, start)
    assert plain[-2:] == ["./test_a.py", "./../test_b.py"]
    assert not {"-n", "--no-cov", "./../gone.py"} & set(plain)
    assert {"--maxfail=0", "--continue-on-collection-errors", "no:randomly"} <= set(plain)
    plugins |= {"xdist", "pytest_cov"}
    assert check_task._arguments(request, start) == [*plain[:-2], "-n", "0", "--no-cov", *plain[-2:]]
    assert check_task._arguments({**request, "alone": True}, start) == plain


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], tuple[int, str | None]]:
    """Checks work of which these tests passed; returns the exit code, and the reward if there is one."""
    task = {"timeout_s": 9, "fail_to_pass": ["a", "b", "c"], "pass_to_pass": [], "credit": "share"}
    (tmp_path / "settings.json").write_text(json.dumps(task))
    monkeypatch.setattr(check_task, "HERE", str(tmp_path))
    monkeypatch.setattr(check_task.tempfile, "mkdtemp", lambda prefix: str(tmp_path / "made"))
    monkeypatch.setattr(sys, "argv", ["check_task.py", str(tmp_path / "work"), str(tmp_path / "reward")])

    def run(passed: Any) -> tuple[int, str | None]:
        def make_tree(work: str, tree: str, of: Any) -> None:
            assert (work, tree, of) == (str(tmp_path / "work"), str(tmp_path / "made" / "tree"), task)
            (tmp_path / "made").mkdir()
            if isinstance(passed, Exception):
                raise passed

        monkeypatch.setattr(check_task, "make_tree", make_tree)
        monkeypatch.setattr(check_task, "passed_tests", lambda tree, of, deadline: passed)
        code = check_task.main()
        assert not (tmp_path / "made").exists()
        reward = tmp_path / "reward"
        return code, reward.read_text() if reward.exists() else None

    return run


def test_the_reward_is_written_unless_the_tests_cannot_be_run(
    check: Callable[[Any], tuple[int, str | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(None) == (1, None)
    assert check({"a", "b", "c"}) == (0, "1\n")
    assert check({"a", "b"}) == (0, "0.666666666667\n")
    assert check(check_task.TooMuchWork("too large")) == (0, "0\n")
    assert capsys.readouterr().out.splitlines() == [
        "the tests cannot be run: pytest did not start",
        "all listed tests passed",
        "did not pass: c",
        "too large",
    ]


@pytest.mark.parametrize(("most", "size", "fits"), [(2, 9, True), (1, 9, False), (2, 8, False)])
def test_work_has_a_largest_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, size: int, fits: bool
) -> None:
    monkeypatch.setattr(check_task, "MAX_FILES", most)
    monkeypatch.setattr(check_task, "MAX_BYTES", size)
    monkeypatch.setattr(check_task, "HERE", str(tmp_path))
    (tmp_path / "protected.py").write_text("is_protected = shadows = lambda *_: False\n")
    for name in ("before.tar.gz", "hidden.tar.gz"):
        archive(tmp_path / name, lambda file: None)
    (tmp_path / "work" / "in").mkdir(parents=True)
    (tmp_path / "work" / "in" / "a").write_text("12345")
    (tmp_path / "work" / "b").write_text("1234")
    task: dict[str, Any] = {"taken": [], "places": [], "protected": [], "imports": []}
    if fits:
        check_task.make_tree(str(tmp_path / "work"), str(tmp_path / "tree"), task)
        assert (tmp_path / "tree" / "in" / "a").read_text() == "12345"
        assert (tmp_path / "tree" / "b").read_text() == "1234"
    else:
        with pytest.raises(check_task.TooMuchWork, match="the work is too large to be checked"):
            check_task.make_tree(str(tmp_path / "work"), str(tmp_path / "tree"), task)

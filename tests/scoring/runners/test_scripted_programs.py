"""Runners of tests where the program is scripted: what they run, with what, and what they make of its end."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.scoring.runners import command as command_runner
from pytest_tfgrpo.scoring.runners.command import run_command
from pytest_tfgrpo.scoring.runners.deciding_files import DecidingFiles
from pytest_tfgrpo.scoring.runners.edits.canary_files import _called, write_canaries
from pytest_tfgrpo.scoring.runners.isolation import IsolatedProgram, IsolatedRun
from pytest_tfgrpo.scoring.runners.javascript import jest_and_vitest, node_test
from pytest_tfgrpo.scoring.runners.javascript import starts as starts_module
from pytest_tfgrpo.scoring.runners.javascript.files import is_node_test, node_tests
from pytest_tfgrpo.scoring.runners.javascript.launch import Launched
from pytest_tfgrpo.scoring.runners.javascript.outcomes import Reported
from pytest_tfgrpo.scoring.runners.javascript.starts import Starts
from pytest_tfgrpo.scoring.runners.protocol import CaseOutcome, RunProblem, SuiteCommand, SuiteRequest
from pytest_tfgrpo.scoring.runners.signed import ForgedReport, read_signed

PASSED, FAILED = CaseOutcome.PASSED, CaseOutcome.FAILED


def request(tree: Path, *run: str, **changes: Any) -> SuiteRequest:
    command = SuiteCommand(runner="command", run=run or ("sh", "{report}"))
    return SuiteRequest(tree=tree, command=command, timeout_s=5, canary=False, isolation="none", **changes)


def xml(*cases: str) -> str:
    return f"<testsuite>{''.join(cases)}</testsuite>"


def case(name: str, inner: str = "", **attributes: Any) -> str:
    given = {"classname": "t", "name": name, "time": "0.5", **attributes}
    return f"<testcase {' '.join(f'{key}={value!r}' for key, value in given.items())}>{inner}</testcase>"


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[IsolatedProgram]]:
    """Return what lets a command write a report in place of running."""

    def script(report: str | Callable[[Path], None] | None, **ended: Any) -> list[IsolatedProgram]:
        seen: list[IsolatedProgram] = []

        def run(program: IsolatedProgram, *, timeout_s: float, **_: Any) -> IsolatedRun:
            assert timeout_s == 5
            seen.append(program)
            (folder,) = program.writable
            if callable(report):
                report(folder)
            elif report is not None:
                (folder / command_runner.REPORT).write_text(report)
            return IsolatedRun(**{"code": 0, "output": " said \n", "elapsed_s": 1.5, **ended})

        monkeypatch.setattr(command_runner, "run_isolated", run)
        return seen

    return script


def test_a_command_is_judged_by_its_report(scripted: Any, tmp_path: Path) -> None:
    twice = case("b") + case("b", "<failure message='no'/>", time="0.25")
    seen = scripted(xml(case("a"), twice), code=1)
    found = run_command(request(tmp_path, files=("t.js",)))
    assert (found.problem, found.detail) == (None, "said")
    assert found.outcomes == {"t::a": PASSED, "t::b": FAILED}
    assert found.seconds == {"t::a": 0.5, "t::b": 0.75}
    assert found.messages == {"t::b": "no"}
    (program,) = seen
    assert program.argv[0].endswith("/sh")
    assert program.argv[1] == str(program.writable[0] / "report.xml")
    assert (program.tree, program.isolation, program.apart) == (tmp_path, "none", True)
    assert {program.environment[name] for name in ("CI", "NO_COLOR")} == {"1"}
    assert not program.writable[0].exists(), "the folder of the report is removed"


@pytest.mark.parametrize(
    ("report", "ended", "problem", "detail"),
    [
        (None, {}, RunProblem.NO_REPORT, "it wrote no {report}; its output ends 'said'"),
        ("<testsuite", {}, RunProblem.NO_REPORT, "its report cannot be read: "),
        (xml(), {}, RunProblem.NOTHING_COLLECTED, "said"),
        (xml(case("a")), {"stopped": "time"}, RunProblem.TIMEOUT, "said"),
        (xml(case("a")), {"stopped": "time", "output": ""}, RunProblem.TIMEOUT, "it took too long"),
    ],
)
def test_what_is_no_report_says_why(
    scripted: Any, tmp_path: Path, report: str | None, ended: dict[str, Any], problem: str, detail: str
) -> None:
    scripted(report, **ended)
    found = run_command(request(tmp_path))
    assert (found.problem, found.outcomes) == (problem, {})
    assert found.detail.startswith(detail)


def test_a_report_that_is_a_link_is_tampered_with(scripted: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.xml").write_text(xml(case("a")))
    scripted(lambda folder: (folder / command_runner.REPORT).symlink_to(tmp_path / "mine.xml"))
    found = run_command(request(tmp_path))
    assert (found.problem, found.outcomes) == (RunProblem.TAMPERED, {})
    assert found.detail.startswith("its report is not a file: ")


def test_a_program_that_is_not_there_is_no_runner(scripted: Any, tmp_path: Path) -> None:
    seen = scripted(xml(case("a")))
    found = run_command(request(tmp_path, "no-such-program-of-ours"))
    assert (found.problem, found.detail) == (
        RunProblem.NO_RUNNER,
        "the program 'no-such-program-of-ours' is not in the environment",
    )
    assert seen == []
    run_command(
        replace(request(tmp_path), command=SuiteCommand(runner="command", folder="web", run=("./go",)))
    )
    assert seen[0].argv == [f"{tmp_path}/web/go"]
    assert seen[0].folder == "web"


def test_canaries_decide_whether_a_report_counts(scripted: Any, tmp_path: Path) -> None:
    asked = replace(request(tmp_path, "sh", "{report}", "{tests}"), files=("test_a.py",), canary=True)

    def reported(passing: str, failing: str) -> Callable[[Path], None]:
        def write(folder: Path) -> None:
            (path,) = (p for p in tmp_path.glob("test_*.py"))
            names = [
                line.split()[1].split("(")[0] for line in path.read_text().splitlines() if "def " in line
            ]
            ends = dict(zip(names, (passing, failing), strict=True))
            inner = {"passed": "", "failed": "<failure message='1 != 2'/>"}
            cases = [case(name, inner[one]) for name, end in ends.items() for one in end.split()]
            (folder / command_runner.REPORT).write_text(xml(case("own"), *cases))
            path.unlink()

        return write

    scripted(reported("passed", "failed"))
    found = run_command(asked)
    assert (found.problem, found.outcomes) == (None, {"t::own": PASSED})
    for ends, said in (
        (("failed", "failed"), "had to be passed, and was failed"),
        (("passed", "passed"), "had to be failed, and was passed"),
        (("passed", ""), "had to be failed, and was not reported"),
        (("passed passed", "failed"), "had to be passed, and was passed, passed"),
    ):
        scripted(reported(*ends))
        found = run_command(asked)
        assert (found.problem, found.outcomes) == (RunProblem.TAMPERED, {})
        assert said in found.detail
    scripted(xml(case("own")))
    assert run_command(replace(asked, command=SuiteCommand(runner="command", run=("sh",)))).problem is None
    assert run_command(replace(asked, canary=False)).problem is None


def test_canaries_lie_beside_the_first_file_of_each_language(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    files = ("lib/a.test.js", "b.test.js", "test_c.py", "d.rb", "e.mjs")
    found = write_canaries(tmp_path, files)
    assert [Path(one.path).suffix for one in found] == [".js", ".py", ".mjs"]
    assert found[0].path.startswith("lib/")
    assert found[0].path.endswith(".test.js")
    text = (tmp_path / found[1].path).read_text()
    assert f"def {found[1].passing}(self):\n        self.assertEqual(1, 1)" in text
    assert f"def {found[1].failing}(self):\n        self.assertEqual(1, 2)" in text
    script = (tmp_path / found[0].path).read_text()
    assert f"test('{found[0].passing}', () => {{}});" in script
    assert len({name for one in found for name in (one.path, one.passing, one.failing)}) == 9
    assert write_canaries(tmp_path, ("b.rb",)) == ()
    (tmp_path / "file").write_text("")
    (other,) = write_canaries(tmp_path, ("file/test_c.py", "d.js"))
    assert other.path.endswith(".js"), "where none can be written, the others are"


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("test_cart.py", "test_tok.py"),
        ("test-cart.js", "test-tok.js"),
        ("spec_cart.js", "spec_tok.js"),
        ("cart_test.py", "tok_test.py"),
        ("cart-spec.js", "tok-spec.js"),
        ("CartTest.js", "tokTest.js"),
        ("CartSpec.js", "tokSpec.js"),
        ("cart.test.js", "tok.test.js"),
        ("cart.js", "tok.js"),
    ],
)
def test_a_canary_is_called_like_the_file_beside_it(name: str, called: str) -> None:
    assert _called(name, "tok") == called


def test_a_file_that_decides_which_tests_run_is_seen_to_change(tmp_path: Path) -> None:
    (tmp_path / "web" / "tests").mkdir(parents=True)
    file = tmp_path / "web" / "tests" / "test_a.py"
    file.write_text("x")
    asked = replace(
        request(tmp_path), files=("web/tests/test_a.py",), command=SuiteCommand(runner="x", folder="api/v1")
    )
    for name in (
        "web/tests/test_a.py",
        "web/tests/conftest.py",
        "web/pytest.ini",
        "setup.cfg",
        "api/tox.ini",
    ):
        before = DecidingFiles(asked)
        assert before.changed() == ""
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("new")
        assert before.changed() == f"{name!r} was written while the tests ran"
    before = DecidingFiles(asked)
    (tmp_path / "web" / "other.py").write_text("x")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "conftest.py").write_text("x")
    assert before.changed() == ""
    was = file.stat()
    while file.stat().st_ctime_ns == was.st_ctime_ns:  # the kernel's clock has steps of milliseconds
        file.write_text(file.read_text())
        os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert "test_a.py" in before.changed(), "one that puts content and time back is seen as well"
    before = DecidingFiles(asked)
    file.unlink()
    assert "test_a.py" in before.changed()


def signed(key: bytes, *records: bytes, first: int = 0) -> bytes:
    rows = (b"%d:%s" % (place, record) for place, record in enumerate(records, first))
    signatures = [hmac.new(key, row, hashlib.sha256).hexdigest().encode() for row in rows]
    return b"".join(b"%s %s\n" % pair for pair in zip(signatures, records, strict=True))


def test_records_are_read_that_the_reporter_signed_in_their_place() -> None:
    key = b"k" * 32
    good = signed(key, b'{"a": 1}', b'{"b": 2}')
    assert list(read_signed(good, key)) == [{"a": 1}, {"b": 2}]
    assert list(read_signed(good + b"half of a", key)) == [{"a": 1}, {"b": 2}]
    assert list(read_signed(b"", key)) == []
    one, two = good.splitlines(keepends=True)
    for forged, line in (
        (two + one, 1),
        (two, 1),
        (one + one, 2),
        (one + b"x {}\n", 2),
        (one + b"\n" + two, 2),
    ):
        with pytest.raises(ForgedReport, match=f"line {line} of the report is not from the reporter"):
            list(read_signed(forged, key))
    with pytest.raises(ForgedReport, match="line 1 of the report is not JSON"):
        list(read_signed(signed(key, b"{"), key))
    with pytest.raises(ForgedReport, match="line 2 of the report is not an object"):
        list(read_signed(signed(key, b"{}", b"[1]"), key))
    with pytest.raises(ForgedReport, match="not from the reporter"):
        list(read_signed(good, b"x" * 32))


def test_a_test_that_runs_too_long_is_the_one_begun_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(starts_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    notes = Starts(tmp_path, "starts", 10.0)
    assert notes.hung() is None

    def note(kind: str, file: str, name: str, end: str = "\n") -> None:
        with (tmp_path / "starts").open("a") as out:
            out.write(json.dumps({"kind": kind, "file": file, "name": name}) + end)

    note("start", "a.js", "outer")
    note("start", "a.js", "inner")
    note("start", "b.js", "quick")
    note("end", "b.js", "quick")
    assert notes.hung() is None
    now[0] = 110.0
    assert notes.hung() is None, "it may take this long"
    now[0] = 110.5
    assert notes.hung() == ("a.js", "inner")
    note("end", "a.js", "inner")
    assert notes.hung() is None, "another test of the file goes on from now"
    now[0] = 121.0
    assert notes.hung() == ("a.js", "outer")
    with (tmp_path / "starts").open("a") as out:
        out.write('{"kind": "end"}\nnot json\n[]\n')
    note("end", "a.js", "outer", end="")
    assert notes.hung() == ("a.js", "outer"), "the note has not ended"
    with (tmp_path / "starts").open("a") as out:
        out.write("\n")
    assert notes.hung() is None


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("test.js", True),
        ("a.test.mjs", True),
        ("a-test.cjs", True),
        ("a_test.js", True),
        ("test-a.js", True),
        ("test/a.js", True),
        ("x/test/y/a.js", True),
        ("tests/a.js", False),
        ("atest.js", False),
        ("a.test.ts", False),
        ("test/a.txt", False),
        ("testa.js", False),
        ("test.js/a.js", False),
    ],
)
def test_node_finds_tests_by_their_name_or_folder(path: str, found: bool) -> None:
    assert is_node_test(path) is found


def test_tests_of_node_are_found_below_a_folder_in_order(tmp_path: Path) -> None:
    for name in (
        "b.test.js",
        "a.test.js",
        "lib.js",
        "node_modules/x/test.js",
        ".git/test.js",
        "sub/test/c.js",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert list(node_tests(tmp_path)) == ["a.test.js", "b.test.js", "sub/test/c.js"]


def launched(
    monkeypatch: pytest.MonkeyPatch, module: Any, ends: dict[str, Launched]
) -> list[tuple[list[str], Any]]:
    seen: list[tuple[list[str], Any]] = []

    def launch(_: SuiteRequest, program: Any, files: Any, deadline: float) -> Launched:
        seen.append((program("/bin/node"), files))
        return ends.get(files[0], Launched(reported=Reported(), detail=f"said {files[0]}"))

    monkeypatch.setattr(module, "launch", launch)
    return seen


def test_each_file_of_node_runs_by_itself_until_one_ends_it_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = replace(request(tmp_path), files=("a", "b", "c", "d"), command=SuiteCommand(runner="node-test"))
    bad = Launched(reported=Reported(), problem=RunProblem.NO_REPORT, detail="b broke")
    seen = launched(monkeypatch, node_test, {"b": bad})
    found = node_test.run_node_tests(asked)
    assert [files for _, files in seen] == [("a",), ("b",), ("c",), ("d",)]
    assert seen[0][0][0] == "/bin/node"
    assert seen[0][0][-1] == str(node_test.PROGRAM)
    assert (found.problem, found.detail) == (RunProblem.NO_REPORT, "b broke")
    for problem in (RunProblem.NO_RUNNER, RunProblem.TIMEOUT, RunProblem.TAMPERED):
        seen = launched(monkeypatch, node_test, {"b": replace(bad, problem=problem)})
        assert node_test.run_node_tests(asked).problem is problem
        assert len(seen) == 2
    seen = launched(monkeypatch, node_test, {})
    found = node_test.run_node_tests(asked)
    assert (found.problem, found.detail) == (RunProblem.NOTHING_COLLECTED, "said a")
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "x.test.js").write_text("")
    (tmp_path / "y.test.js").write_text("")
    seen = launched(monkeypatch, node_test, {})
    node_test.run_node_tests(replace(asked, files=(), command=SuiteCommand(runner="node-test", folder="web")))
    assert [files for _, files in seen] == [("web/x.test.js",)]
    refused = node_test.run_node_tests(
        replace(asked, command=SuiteCommand(runner="node-test", run=("--eval=process.exit()",)))
    )
    assert refused.problem is RunProblem.NOTHING_COLLECTED
    assert refused.detail


def test_jest_and_vitest_run_all_files_at_once_by_programs_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = replace(request(tmp_path), files=("a", "b"))
    broken = Launched(reported=Reported(), problem=RunProblem.NO_REPORT, detail="why")
    seen = launched(monkeypatch, jest_and_vitest, {"a": broken})
    for run, name in ((jest_and_vitest.run_jest, "jest.cjs"), (jest_and_vitest.run_vitest, "vitest.mjs")):
        found = run(asked)
        assert (found.problem, found.detail) == (RunProblem.NO_REPORT, "why")
        argv, files = seen.pop()
        assert (argv, files) == (["/bin/node", str(jest_and_vitest.HERE / name)], ("a", "b"))
        assert Path(argv[1]).is_file()

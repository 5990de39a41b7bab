"""How requirements are locked and installed: which words an installer gets, and what it may answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.core.errors import CheckError
from pytest_tfgrpo.harvest.environment import package_tools, setup_commands
from pytest_tfgrpo.harvest.environment.builder import _require_whole, until_of
from pytest_tfgrpo.harvest.environment.package_tools import (
    BuildProblem,
    BuildTools,
    Locked,
    _lines,
    _scrubbed,
    inside,
    install,
    lock,
    make_venv,
    open_tools,
    outside,
)
from pytest_tfgrpo.harvest.environment.setup_commands import lock_node_packages, run_setup
from pytest_tfgrpo.sandbox.programs.cancelling import Cancelled, cancelled_by
from pytest_tfgrpo.sandbox.programs.environments import BUILT, SETUP, VENV, Environment
from pytest_tfgrpo.scoring.runners.isolation import SYSTEM_PATH, IsolatedProgram, IsolatedRun

HASH = "sha256:" + "a" * 64
OTHER = "sha256:" + "b" * 64
UNTIL = "2024-02-01T00:00:00Z"
PYTHON, UV = Path("/py/bin/python3"), Path("/uv/bin/uv")
NO_DATE = (1, "warning: soap is missing an upload date")
FAILED, DONE = (1, "No soap"), (0, "")

Run = tuple[str, tuple[str, ...]]


class Installer:
    """Stands for programs: answers what it is told, and writes a file first."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *answers: tuple[int, str], pip: tuple[int, int] = (26, 0)
    ):
        self.answers, self.runs = list(answers), list[Run]()
        self.writes: dict[str, str] = {}
        monkeypatch.setattr(package_tools, "outside", self._as("outside"))
        monkeypatch.setattr(package_tools, "inside", self._as("inside"))
        monkeypatch.setattr(setup_commands, "inside", self._as("inside"))
        monkeypatch.setattr(package_tools, "pip_version", lambda _: pip)

    def _as(self, where: str) -> Callable[..., tuple[int, str]]:
        def run(tools: BuildTools, argv: Sequence[str], folder: Path, *_: Any) -> tuple[int, str]:
            self.runs.append((where, tuple(argv)))
            for name, text in self.writes.items():
                (folder / name).write_text(text)
            return self.answers.pop(0)

        return run

    @property
    def dated(self) -> list[tuple[str, bool, bool]]:
        """Where each ran, whether with a date, whether with wheels alone."""
        words = [(where, " ".join(argv)) for where, argv in self.runs]
        return [(where, UNTIL in text, "--only-binary :all:" in text) for where, text in words]


def tools(uv: Path | None = UV, environ: Mapping[str, str] | None = None) -> BuildTools:
    return BuildTools(interpreters={"3.11": PYTHON}, uv=uv, environ=environ or {})


LINE = f"soap==3.0 --hash={HASH}"


@pytest.mark.parametrize(
    ("answers", "until", "runs", "notes", "kept"),
    [
        ([DONE], UNTIL, [("outside", True, True)], 0, None),
        ([DONE], None, [("outside", False, True)], 0, None),
        ([FAILED, DONE], UNTIL, [("outside", True, True), ("inside", True, False)], 0, UNTIL),
        ([FAILED, DONE], None, [("outside", False, True), ("inside", False, False)], 0, None),
        ([NO_DATE, DONE], UNTIL, [("outside", True, True), ("outside", False, True)], 1, None),
        (
            [NO_DATE, FAILED, DONE],
            UNTIL,
            [("outside", True, True), ("outside", False, True), ("inside", False, False)],
            1,
            None,
        ),
    ],
)
def test_uv_locks_wheels_as_of_a_date_and_else_builds_in_the_sandbox(
    answers: list[tuple[int, str]],
    until: str | None,
    runs: list[Any],
    notes: int,
    kept: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installer = Installer(monkeypatch, *answers)
    installer.writes = {"lock.txt": f"soap==3.0 \\\n    --hash={HASH}\n"}
    found = lock(tools(), "3.11", ["soap>=3"], until, tmp_path)
    assert (found.lines, len(found.notes), found.until) == ((LINE,), notes, kept)
    assert installer.dated == runs
    assert (tmp_path / "requirements.in").read_text() == "soap>=3\n"


def test_nothing_required_asks_nobody_and_an_unknown_python_is_named(tmp_path: Path) -> None:
    assert lock(tools(), "3.9", [], UNTIL, tmp_path) == Locked(lines=())
    with pytest.raises(BuildProblem, match=r"no Python 3\.9 on this machine, which has 3\.11; install it"):
        lock(tools(), "3.9", ["soap"], UNTIL, tmp_path)


def test_what_cannot_be_resolved_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Installer(monkeypatch, FAILED, (2, "Failed to build `soap`\nValueError: x"))
    with pytest.raises(
        BuildProblem, match=r"cannot resolve soap, towel: Failed to build `soap`: ValueError: x"
    ):
        lock(tools(), "3.11", ["soap", "towel"], None, tmp_path)


def report(**archive: Any) -> str:
    item = {"metadata": {"name": "Soap", "version": "3.0"}, "download_info": {"archive_info": archive}}
    return json.dumps({"install": [item]})


@pytest.mark.parametrize(
    ("archive", "pip", "until", "answers", "dated", "notes", "kept"),
    [
        ({"hashes": {"sha256": "a" * 64}}, (26, 0), UNTIL, [DONE], True, 0, None),
        ({"hash": "sha256=" + "a" * 64}, (26, 0), UNTIL, [FAILED, DONE], True, 0, UNTIL),
        ({"hash": "sha256=" + "a" * 64}, (25, 9), UNTIL, [FAILED, DONE], False, 1, None),
        ({"hash": "sha256=" + "a" * 64}, (22, 3), None, [DONE], False, 0, None),
    ],
)
def test_pip_locks_what_it_reports(
    archive: Any,
    pip: tuple[int, int],
    until: str | None,
    answers: list[tuple[int, str]],
    dated: bool,
    notes: int,
    kept: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installer = Installer(monkeypatch, *answers, pip=pip)
    installer.writes = {"report.json": report(**archive)}
    found = lock(tools(None), "3.11", ["soap"], until, tmp_path)
    assert (found.lines, len(found.notes), found.until) == ((LINE,), notes, kept)
    assert [has_date for _, has_date, _ in installer.dated] == [dated] * len(answers)
    words = f"{PYTHON} -I -m pip install --dry-run --ignore-installed --report report.json -r requirements.in"
    assert " ".join(installer.runs[0][1]).startswith(f"{words} ")


@pytest.mark.parametrize(
    ("printed", "code", "version"),
    [
        (b"pip 26.0.1 from x (python 3.11)\n", 0, (26, 0)),
        (b"pip 9.10\n", 0, (9, 10)),
        (b"pip 26.0\n", 1, (0, 0)),
        (b"No module named pip\n", 0, (0, 0)),
        (OSError(), 0, (0, 0)),
        (subprocess.TimeoutExpired("pip", 60), 0, (0, 0)),
    ],
)
def test_the_version_of_a_pip_is_what_it_prints(
    printed: bytes | Exception, code: int, version: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(argv: Sequence[Any], **_: Any) -> Any:
        assert argv == [PYTHON, "-I", "-m", "pip", "--version"]
        if isinstance(printed, Exception):
            raise printed
        return subprocess.CompletedProcess(argv, code, printed)

    monkeypatch.setattr(package_tools.subprocess, "run", run)
    assert package_tools.pip_version.__wrapped__(PYTHON) == version


def test_an_old_pip_works_in_an_environment_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer = Installer(monkeypatch, DONE, DONE, pip=(22, 2))
    installer.writes = {"report.json": report(hashes={"sha256": "a" * 64})}
    lock(tools(None), "3.11", ["soap"], None, tmp_path)
    assert installer.runs[0][1] == (str(PYTHON), "-I", "-m", "venv", str(tmp_path / "venv"))
    assert installer.runs[1][1][0] == str(tmp_path / "venv/bin/python")


@pytest.mark.parametrize("archive", [{"hash": "md5=1"}, {"hashes": {"md5": "1"}}, {}])
def test_a_report_without_a_hash_locks_nothing(
    archive: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Installer(monkeypatch, DONE).writes = {"report.json": report(**archive)}
    with pytest.raises(BuildProblem, match="pip's report has no hashes, so nothing can be locked"):
        lock(tools(None), "3.11", ["soap"], None, tmp_path)


def test_lines_of_a_lock_are_sorted_with_each_hash_once() -> None:
    texts = [
        "# a comment",
        "",
        "--index-url x",
        f"towel[a,b]==1 ; python_version > '3' --hash={OTHER} --hash={HASH}",
    ]
    texts += [f"soap==3.0 --hash={HASH} --hash={HASH}"]
    assert _lines(texts) == (LINE, f"towel==1 --hash={HASH} --hash={OTHER}")
    for bad in ("soap==3.0", f"soap>=3 --hash={HASH}", "soap==3.0 --hash=md5:1", "soap @ file:///x"):
        with pytest.raises(BuildProblem, match="has no sha256 for"):
            _lines([bad])


@pytest.mark.parametrize(
    ("uv", "pip", "argv"),
    [
        (UV, (0, 0), f"{UV} venv --python {PYTHON} v --no-project --no-python-downloads"),
        (None, (22, 3), f"{PYTHON} -I -m venv v --without-pip"),
        (None, (22, 2), f"{PYTHON} -I -m venv v"),
    ],
)
def test_an_environment_has_a_pip_where_nothing_else_can_install(
    uv: Path | None, pip: tuple[int, int], argv: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer = Installer(monkeypatch, DONE, FAILED, pip=pip)
    make_venv(tools(uv), PYTHON, Path("v"))
    assert " ".join(installer.runs[0][1]) == argv
    with pytest.raises(BuildProblem, match="cannot make an environment of '/py/bin/python3': No soap"):
        make_venv(tools(uv), PYTHON, Path("v"))


@pytest.mark.parametrize(
    ("answers", "until", "runs"),
    [
        ([DONE], UNTIL, [("outside", False, True)]),
        ([FAILED, DONE], UNTIL, [("outside", False, True), ("inside", True, False)]),
        (
            [FAILED, FAILED, DONE],
            UNTIL,
            [("outside", False, True), ("inside", True, False), ("inside", False, False)],
        ),
        ([FAILED, DONE], None, [("outside", False, True), ("inside", False, False)]),
    ],
)
@pytest.mark.parametrize(
    ("uv", "pip", "program"),
    [(UV, (0, 0), UV), (None, (26, 0), PYTHON), (None, (22, 2), Path("v/bin/python"))],
)
def test_what_wheels_lack_is_built_with_the_tools_of_its_date_first(
    uv: Path | None,
    pip: tuple[int, int],
    program: Path,
    answers: list[tuple[int, str]],
    until: str | None,
    runs: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if uv is None and pip < (26, 0) and until:  # it knows no date
        answers, runs = [answers[0], DONE], [runs[0], *([("inside", False, False)] if answers[0][0] else [])]
    installer = Installer(monkeypatch, *answers, pip=pip)
    install(tools(uv), Environment(lock=(LINE,), until=until), tmp_path, Path("v"), PYTHON)
    assert installer.dated == runs
    assert installer.runs[0][1][0] == str(program)
    assert all({"--require-hashes", "--no-deps"} <= set(argv) for _, argv in installer.runs)
    assert (tmp_path / "lock.txt").read_text() == f"{LINE}\n"


def test_an_environment_without_packages_installs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer = Installer(monkeypatch)
    install(tools(), Environment(), tmp_path, Path("v"), PYTHON)
    assert installer.runs == []
    installer.answers = [FAILED, FAILED]
    with pytest.raises(BuildProblem, match="cannot install the packages: No soap"):
        install(tools(), Environment(lock=(LINE,)), tmp_path, Path("v"), PYTHON)


def test_the_sandbox_knows_where_packages_come_from_and_no_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "certs.pem"
    monkeypatch.setattr(package_tools, "BUNDLES", (str(tmp_path / "none"), str(bundle)))
    environ = {
        "UV_INDEX_URL": "https://me:secret@index/x",
        "PIP_INDEX_URL": "https://index/x",
        "https_proxy": "http://proxy:1",
        "PIP_FIND_LINKS": f"{tmp_path} file://{tmp_path}/sub relative",
        "AWS_SECRET": "x",
        "PIP_CERT": "/mine",
    }
    (tmp_path / "sub").mkdir()
    kept, shown = _scrubbed(environ)
    assert set(kept) == {"PIP_INDEX_URL", "https_proxy", "PIP_FIND_LINKS"}
    assert shown == [tmp_path, tmp_path / "sub"]
    bundle.touch()
    kept, _ = _scrubbed(environ)
    assert {name: value for name, value in kept.items() if value == str(bundle)}.keys() == {
        *package_tools.BUNDLE_NAMES
    }


# set-up


@pytest.mark.parametrize(
    ("answers", "until", "notes", "dated"),
    [([DONE], UNTIL, 0, [True]), ([FAILED, DONE], UNTIL, 1, [True, False]), ([DONE], None, 0, [False])],
)
def test_npm_locks_as_of_a_date_or_says_that_it_could_not(
    answers: list[tuple[int, str]],
    until: str | None,
    notes: int,
    dated: list[bool],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installer = Installer(monkeypatch, *answers)
    installer.writes = {"package-lock.json": "{}"}
    files, told = lock_node_packages(tools(), {"package.json": "1", "a/b.json": "2"}, until, tmp_path)
    assert files == {"package.json": "1", "a/b.json": "2", "package-lock.json": "{}"}
    assert (len(told), [one for _, one, _ in installer.dated]) == (notes, dated)
    assert (tmp_path / "a/b.json").read_text() == "2"


def test_npm_that_makes_no_lock_says_what_it_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installer = Installer(monkeypatch, FAILED)
    for answer, writes in ((FAILED, {"package-lock.json": "{}"}), ((0, "No soap"), {})):
        (tmp_path / "package-lock.json").unlink(missing_ok=True)
        installer.answers, installer.writes = [answer], writes
        with pytest.raises(BuildProblem, match=r"npm made no lock of package\.json: No soap"):
            lock_node_packages(tools(), {}, None, tmp_path)


def test_set_up_commands_run_in_order_and_the_first_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer = Installer(monkeypatch, DONE, (3, "No soap"))
    environment = Environment(setup=(("npm", "ci"), ("make", "all"), ("never",)))
    with pytest.raises(BuildProblem, match="the set-up command 'make all' ended with 3: No soap"):
        run_setup(tools(), environment, tmp_path)
    assert [argv for _, argv in installer.runs] == [("npm", "ci"), ("make", "all")]


@pytest.mark.parametrize(
    ("at", "until"),
    [
        (0, "1970-02-01T00:00:00Z"),
        (-5, "1970-02-01T00:00:00Z"),
        (1_703_980_799, "2024-01-01T00:00:00Z"),
        (1_706_745_599, "2024-02-01T00:00:00Z"),
        (1_706_745_600, "2024-03-01T00:00:00Z"),
        (10**15, "9892-04-01T00:00:00Z"),
    ],
)
def test_changes_of_one_month_share_the_end_of_it(at: int, until: str) -> None:
    assert until_of(at) == until


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda f: None, ""),
        (lambda f: (f / BUILT).touch(), f"a set-up command wrote {BUILT}"),
        (lambda f: (f / SETUP / "node_modules").rmdir(), "the set-up commands made no node_modules"),
        (lambda f: (f / VENV / "pyvenv.cfg").write_text("home = elsewhere"), "changed the interpreter"),
        (
            lambda f: (f / VENV / "bin").rename(f / "b") and (f / VENV / "bin").symlink_to(f / "b"),
            "made a link of .*bin",
        ),
        (
            lambda f: (f / SETUP).rename(f / "s") and (f / SETUP).symlink_to(f / "s"),
            f"made a link of {SETUP}",
        ),
    ],
)
def test_code_of_packages_leads_no_name_of_the_environment_elsewhere(
    spoil: Callable[[Path], object], problem: str, tmp_path: Path
) -> None:
    for name in (f"{VENV}/bin", f"{SETUP}/node_modules"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / VENV / "pyvenv.cfg").write_text("home = here")
    (tmp_path / VENV / "bin/python").touch()
    before = (str(tmp_path / VENV / "bin/python"), b"home = here")
    spoil(tmp_path)
    environment = Environment(python="3.11", links=("web/node_modules",))
    if not problem:
        _require_whole(environment, tmp_path, before)
        return
    with pytest.raises(BuildProblem, match=problem):
        _require_whole(environment, tmp_path, before)


class Started:
    """A process that ends, or does not, and writes what it is told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, code: int | None = 0, said: bytes = b"") -> None:
        self.code, self.said, self.did = code, said, list[str]()
        self.given: dict[str, Any] = {}
        monkeypatch.setattr(package_tools.subprocess, "Popen", self)

    def __call__(self, argv: Sequence[str], **given: Any) -> Started:
        self.given = {"argv": argv, **given}
        given["stdout"].write(self.said)
        return self

    def wait(self, timeout: float | None = None) -> int:
        self.did.append("wait")
        if self.code is None and timeout is not None:
            raise subprocess.TimeoutExpired("x", timeout)
        return self.code or 0

    def kill(self) -> None:
        self.did.append("kill")


def test_an_installer_runs_with_the_variables_of_the_machine_but_those_of_another_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {"PIP_INDEX_URL": "https://a:b@host", "HOME": "/h", "UV_INDEX": "x", "MYPYTHON": "y"}
    left = dict.fromkeys(
        ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX", "UV_PROJECT_ENVIRONMENT", "GIT_DIR",
         "UV_SYSTEM_PYTHON", "PIP_TARGET", "PIP_USER", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV"), "x"
    )  # fmt: skip
    started = Started(monkeypatch, 3, b" \n\xffsaid\n ")
    assert outside(tools(environ={**kept, **left}), ["/uv", "pip"], tmp_path) == (3, "\ufffdsaid")
    assert (started.given["env"], started.given["cwd"]) == (kept, tmp_path)
    assert (started.given["argv"], started.given["stderr"]) == (["/uv", "pip"], subprocess.STDOUT)
    assert started.given["stdin"] == subprocess.DEVNULL
    assert started.did == ["wait", "kill", "wait"]


def test_an_installer_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = Started(monkeypatch, None)
    slow = replace(tools(), timeout_s=0.01)
    assert outside(slow, ["/somewhere/uv", "pip"], tmp_path) == (1, "uv took over 0.01 s")
    assert started.did[-2:] == ["kill", "wait"]


def test_a_cancelled_installer_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = Started(monkeypatch, None)
    with pytest.raises(Cancelled), cancelled_by(lambda: True):
        outside(tools(), ["/uv"], tmp_path)
    assert started.did == ["kill", "wait"]


def test_code_of_packages_runs_in_a_sandbox_with_the_network_and_writes_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[IsolatedProgram] = []
    answers: list[Any] = [
        IsolatedRun(code=0, output=" fine \n", elapsed_s=1.0),
        IsolatedRun(code=None, output="", elapsed_s=1.0),
        IsolatedRun(code=5, output="no\n", elapsed_s=1.0),
        IsolatedRun(code=None, output="half", elapsed_s=1.0, stopped="time"),
        CheckError("bwrap is missing"),
    ]

    def run(program: IsolatedProgram, timeout_s: float) -> IsolatedRun:
        assert timeout_s == 1200
        seen.append(program)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        found: IsolatedRun = answer
        return found

    monkeypatch.setattr(package_tools, "run_isolated", run)
    links = tmp_path / "links"
    links.mkdir()
    own = tools(environ={"UV_FIND_LINKS": str(links), "SECRET": "x", "HTTPS_PROXY": "http://a:b@c"})
    folder = tmp_path / "folder"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "tool").symlink_to(sys.executable)
    programs = (Path(sys.executable), folder / "bin" / "tool")
    assert inside(own, ["tool", "x"], folder, programs, "sub") == (0, "fine")
    assert [inside(own, ["x"], folder, ()) for _ in range(3)] == [
        (0, ""),
        (5, "no"),
        (1, "half\nended: over its limit of time"),
    ]
    with pytest.raises(BuildProblem, match="package code runs only in a sandbox: bwrap is missing"):
        inside(own, ["x"], folder, ())
    first, plain = seen[:2]
    assert (first.tree, first.folder, first.network, first.isolation) == (folder, "sub", "host", "bwrap")
    assert (plain.folder, plain.environment["PATH"]) == (".", SYSTEM_PATH)
    assert links in first.readable
    assert not [path for path in first.readable if path.is_relative_to(folder)]
    assert len(set(first.readable)) == len(first.readable)
    search = first.environment["PATH"].split(os.pathsep)
    assert search[:2] == [str(Path(sys.executable).parent), str(folder / "bin")]
    assert (first.environment["UV_LINK_MODE"], first.environment["UV_PYTHON_DOWNLOADS"]) == ("copy", "never")
    assert not {"SECRET", "HTTPS_PROXY"} & {*first.environment}


def test_uv_is_looked_for_beside_the_interpreter_and_then_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("beside", "path"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "uv").touch(mode=0o755)
    monkeypatch.setattr(package_tools.sys, "executable", str(tmp_path / "beside" / "python"))
    environ = {"PATH": str(tmp_path / "path")}
    assert open_tools({}, environ, "none").uv == tmp_path / "beside" / "uv"
    (tmp_path / "beside" / "uv").unlink()
    found = open_tools({}, environ, "none")
    assert (found.uv, found.isolation, found.environ) == (tmp_path / "path" / "uv", "none", environ)
    (tmp_path / "path" / "uv").chmod(0o644)
    assert open_tools({"3.11": PYTHON}, environ).uv is None

"""Options and fixtures of all tests."""

from __future__ import annotations

import compileall
import gc
import os
import secrets
import signal
import subprocess
import time
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

try:
    import hypothesis
except ImportError as error:
    raise pytest.UsageError(
        "the project's own tests need more than the package: pip install -e '.[test-full]'; its example "
        "suite runs without: pytest --tfgrpo fixtures"
    ) from error
from hypothesis import strategies as st
from support.connections import check_connections
from support.guard import Guard
from support.tables import Tables
from threadpoolctl import threadpool_limits

import pytest_tfgrpo
from pytest_tfgrpo.storage.database import DatabaseKind

if TYPE_CHECKING:
    from support.campaign import Campaign
    from support.collector import Collector
    from support.fake_model import Answer, FakeModel, Serve
    from support.frozen import Frozen, FrozenProjects
    from support.project import Project

# A busy machine is no failure, and what passed once passes again: `--faults` looks for new examples.
quick = hypothesis.settings(
    deadline=None, max_examples=15, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.register_profile("quick", quick)
hypothesis.settings.register_profile("thorough", quick, max_examples=100, derandomize=False)
hypothesis.settings.load_profile("quick")
check_connections()
GOLDEN = Path(__file__).parent / "golden"
# Two threads of linear algebra in each of two workers would wait for each other; our matrices are small.
threadpool_limits(1, user_api="blas")
os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write tests/golden/ anew instead of comparing with it"
    )
    parser.addoption(
        "--faults",
        action="store_true",
        help="run every case of the fault campaigns, not a sample, and more examples of each property",
    )
    parser.addoption(
        "--faults-seed", type=int, help="repeat the sample of the fault campaigns with this seed"
    )


@pytest.fixture(scope="session")
def campaign(pytestconfig: pytest.Config) -> Campaign:
    """Return which cases of a fault campaign to run."""
    from support.campaign import Campaign

    return Campaign(pytestconfig.getoption("faults_seed"), pytestconfig.getoption("faults"))


@pytest.fixture
def golden(pytestconfig: pytest.Config) -> Callable[[str, str], None]:
    """Return a function that compares a text with a file of tests/golden/."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if pytestconfig.getoption("update_golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"{path} is missing; make it with --update-golden"
        assert text == path.read_text(encoding="utf-8")

    return check


@pytest.fixture
def project(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> Project:
    """Return a project to run pytest in; with ``--faults`` each of its runs writes the page."""
    from support.project import Project

    monkeypatch.delenv("FEATURE_TFGRPO_GROUP", raising=False)
    return Project(pytester, monkeypatch, pages=pytestconfig.getoption("faults"))


@pytest.fixture(scope="session", autouse=True)
def impatient() -> Iterator[None]:
    """Look often whether a server is back, and wait seconds for it, not minutes.

    How long a test waits for a server that stays away, it says itself: a tenth of a second would be too short
    for one that comes back on a busy machine. Closed clients are not waited for until all tests have ended,
    see `pytest_unconfigure`.
    """
    from pytest_tfgrpo.llm.limits import patience
    from pytest_tfgrpo.llm.server import transport

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patience, "FIRST_S", 0.01)
        patch.setattr(patience, "MOST_S", 0.04)
        patch.setattr(patience, "TOTAL_S", 20.0)
        patch.setattr(transport, "SETTLE_S", 0.0)
        yield


def pytest_unconfigure() -> None:
    """Let the threads of closed HTTP clients let go: this interpreter ends soon."""
    from pytest_tfgrpo.llm.server.transport import SETTLE_S

    time.sleep(SETTLE_S)


@pytest.fixture(scope="session", autouse=True)
def lean_runs() -> Iterator[None]:
    """Spare the pytest runs inside tests what is the same in all of them, and all tests the disk."""
    from support.disk import unsynced
    from support.inner_runs import lean

    from pytest_tfgrpo.gate import sample_size

    with lean(), unsynced(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample_size, "DRAWS", 5)  # a baseline that is saved simulates a second of builds
        patch.setattr(sample_size, "FEWER_DRAWS", 5)
        yield


@pytest.fixture
def durable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set databases up as the product does, to look at how they reach the disk."""
    from support.disk import PREPARE

    monkeypatch.setattr(DatabaseKind, "_prepare", PREPARE)


@pytest.fixture(scope="session")
def frozen_projects(tmp_path_factory: pytest.TempPathFactory) -> FrozenProjects:
    """Return the projects that tests share copies of."""
    from support.frozen import FrozenProjects

    return FrozenProjects(tmp_path_factory.mktemp("frozen"))


@pytest.fixture
def frozen(frozen_projects: FrozenProjects, project: Project) -> Frozen:
    """Return a function that makes of the project what a function writes and runs, once in a session."""
    from support.frozen import Frozen

    return Frozen(frozen_projects, project)


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """Return an OTLP/HTTP receiver where the standard variables point to, which runs wait for as they end."""
    from support.collector import Collector

    from pytest_tfgrpo.telemetry.sinks import otlp_sender

    monkeypatch.setattr(otlp_sender, "FLUSH_S", 100.0)
    for name in [name for name in os.environ if name.startswith("OTEL_") or name == "TRACEPARENT"]:
        monkeypatch.delenv(name)
    with Collector() as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.url)
        yield running


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Return a function that starts a model server where the default endpoint points to."""
    from support.fake_model import FakeModel

    with ExitStack() as running:

        def start(answer: Answer, **options: Any) -> FakeModel:
            server = running.enter_context(FakeModel(answer, **options))
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            return server

        yield start


def pytest_configure(config: pytest.Config) -> None:
    """Watch over the rule of the default tier, draw the seed of the fault campaigns, compile the package.

    Workers get the seed with the options. Every process that a test starts would compile the package again
    where none may write it. A shell's background job ignores Ctrl-C, and all that it starts inherits that:
    programs that a test interrupts would not end.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.option.faults:
        hypothesis.settings.load_profile("thorough")
    config.pluginmanager.register(Guard(), "guard")
    shuffles = config.pluginmanager.hasplugin("randomly")
    if runs_all(config) and not config.option.keyword and not shuffles:
        config.pluginmanager.register(Tables(), "tables")
    if config.option.faults_seed is None:
        config.option.faults_seed = secrets.randbelow(10**6)
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(Path(pytest_tfgrpo.__file__).parent, quiet=2)


def runs_all(config: pytest.Config) -> bool:
    """Whether the default tier runs, not some of its folders, files or tests; workers are asked too."""
    return [Path(given).resolve() for given in config.args] == [GOLDEN.parent]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what a run of the default tests leaves out."""
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        terminalreporter.line(
            "not run: tests that start programs, servers and browsers; "
            "pip install '.[test-full]', then pytest tests/slow"
        )


def pytest_report_header(config: pytest.Config) -> str:
    """Print what repeats the fault campaigns."""
    which = "all cases" if config.option.faults else "a sample"
    return f"fault campaigns: {which}, --faults-seed={config.option.faults_seed}"


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    """Kill the programs that a failed test leaves running; a ``with`` block would wait for them for ever."""
    started: list[weakref.ref[subprocess.Popen[Any]]] = []
    start, leave = subprocess.Popen.__init__, subprocess.Popen.__exit__

    def started_here(process: subprocess.Popen[Any], *args: Any, **options: Any) -> None:
        started.append(weakref.ref(process))
        start(process, *args, **options)

    def left_here(process: subprocess.Popen[Any], kind: type[BaseException] | None, *error: Any) -> None:
        if kind is not None:
            kill(process)
        leave(process, kind, *error)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", started_here)
        patch.setattr(subprocess.Popen, "__exit__", left_here)
        try:
            return (yield)
        except BaseException:
            for process in filter(None, (one() for one in started)):
                kill(process)
            raise


def kill(process: subprocess.Popen[Any]) -> None:
    """Kill a program, with the group of processes that it leads, unless it has ended or never started."""
    if getattr(process, "pid", None) is None or process.poll() is not None:
        return
    with suppress(ProcessLookupError):
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
    process.wait()


def pytest_collection(session: pytest.Session) -> None:
    """Let each worker import its share of the tests first, then what others have imported meanwhile.

    The assertions of a fresh checkout are rewritten once then, not by each worker. What is imported and
    collected stays, so no garbage is looked for.
    """
    gc.disable()
    worker: dict[str, Any] = getattr(session.config, "workerinput", {})
    if not worker or not runs_all(session.config):
        return
    tests = GOLDEN.parent
    paths = [path for path in sorted(tests.rglob("test_*.py")) if path.relative_to(tests).parts[0] != "slow"]
    for path in paths[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        if not any(path.parent.glob(f"__pycache__/{path.stem}.*-pytest-*.pyc")):
            with suppress(Exception, pytest.skip.Exception):  # collecting it tells what is wrong
                assert pytest.Module.from_parent(session, path=path).obj


@hypothesis.settings(database=None)
@hypothesis.given(st.text(), st.integers(), st.floats())
def read_constants(text: str, whole: int, number: float) -> None:
    """Let Hypothesis read the constants of all modules and the table of characters: it does so once."""


def pytest_collection_finish() -> None:
    """Import what tests need, which is no test's time, and take what is loaded out of garbage collection.

    Every pytest run inside a test collects often.
    """
    from support.project import import_everything

    import_everything()
    read_constants()
    gc.enable()
    gc.collect()
    gc.freeze()

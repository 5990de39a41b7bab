"""The command ``tfgrpo loop demo``: three days of an application, whose loop is killed once, then learns.

The same traffic goes to a second loop whose service nobody kills; what both know must be equal.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from urllib.parse import urlsplit

from pytest_tfgrpo.cli.demo.demo_library import prepare
from pytest_tfgrpo.cli.demo_folder import demo_folder
from pytest_tfgrpo.cli.loop.arguments import TASKS
from pytest_tfgrpo.cli.loop.demo_traffic import (
    DAY_NS,
    DAYS,
    OPTED_OUT,
    SESSIONS,
    DemoRequest,
    DemoTraffic,
    open_traffic,
)
from pytest_tfgrpo.cli.loop.deployment.demo_rollout import rollout_lines
from pytest_tfgrpo.cli.loop.training.demo_learning import (
    THRESHOLD,
    learned_lines,
    make_suite,
    training_config,
)
from pytest_tfgrpo.cli.page_file import write
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.file_writing import write_text
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.bus.streams import STREAMS
from pytest_tfgrpo.production.config import load_loop_config
from pytest_tfgrpo.production.deployment.serving import ROW
from pytest_tfgrpo.production.door.opt_outs import OptOuts
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.evaluation.evaluator import evaluator_lag
from pytest_tfgrpo.production.loop_file import write_key
from pytest_tfgrpo.production.report.figure_lines import report_lines
from pytest_tfgrpo.production.report.figures import report_of
from pytest_tfgrpo.production.report.page.page import loop_page, story_of
from pytest_tfgrpo.production.service.app import require_packages
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
from pytest_tfgrpo.production.training.versions.artifacts import FolderArtifacts
from pytest_tfgrpo.production.training.versions.policies import Policies
from pytest_tfgrpo.production.view import queries
from pytest_tfgrpo.production.view.view import TRAJECTORIES, LoopView
from pytest_tfgrpo.retry import may_pass
from pytest_tfgrpo.storage.event_store import STATE, change

PAGE = "loop-demo.html"
"""The page of a demo whose files are not kept."""
PATIENCE_S = 60.0
"""How long the demo waits for what takes a second on a machine that is not busy."""
JOB_S = 300.0
"""How long it waits for a training job."""
SERVE = "import sys; from pytest_tfgrpo.cli import main; sys.exit(main(['loop', 'serve', '--config', {!r}]))"
LAST = 100_000
"""Trajectories that the report looks at: all."""
_TRIES = 200


@dataclass(slots=True)
class DemoLoop:
    """A loop in a folder of its own, and the process that serves it."""

    folder: Path
    address: str = ""
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    @property
    def config(self) -> Path:
        """Its ``loop.toml``."""
        return self.folder / "loop.toml"

    def start(self) -> None:
        """Start the service and wait until it listens; raises StoreError."""
        with (self.folder / "serve.log").open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", SERVE.format(str(self.config))],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = [word.rstrip(",") for word in line.split() if word.startswith("http://")]
        if not found:
            said = (self.folder / "serve.log").read_text(encoding="utf-8")[-2000:]
            why = f"{line}{said}".removeprefix("tfgrpo: ").strip()
            raise StoreError(f"the service of {self.config} did not start: {why}")
        self.address = urlsplit(found[0]).netloc

    def kill(self) -> None:
        """End the service with ``kill -9``."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self._reap()

    def stop(self) -> None:
        """End the service as an operator does."""
        if self.process is None:
            return
        self.process.terminate()
        self._reap()

    def _reap(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        self.process.wait(PATIENCE_S)
        self.process.stdout.close()
        self.process = None

    def post(self, request: DemoRequest) -> None:
        """Send a request until it is answered, as exporters do; raises StoreError."""
        for _ in range(_TRIES):
            try:
                status = self.send(request)
            except (OSError, http.client.HTTPException):
                status = 503
            if not may_pass(status):
                if (status >= 400) is not bool(request.refused):
                    raise StoreError(f"{request.path} was answered with {status}")
                return
            time.sleep(0.05)
        raise StoreError(f"{request.path} of {self.address} was not answered")

    def send(self, request: DemoRequest) -> int:
        """Send a request once; return the status of the answer. Raises OSError and HTTPException."""
        link = http.client.HTTPConnection(self.address, timeout=10)
        try:
            link.request("POST", request.path, request.body, {"Content-Type": "application/json"})
            answer = link.getresponse()
            answer.read()
            return answer.status
        finally:
            link.close()


@dataclass(slots=True)
class DemoWatch:
    """What this process reads of a loop while its service runs."""

    loop: DemoLoop
    bus: Bus
    view: LoopView

    def until_assembled(self, runs: int) -> None:
        """Wait until so many trajectories are there; raises StoreError."""

        def there() -> bool:
            self.view.catch_up(self.bus)
            return queries.stored(self.view)[TRAJECTORIES] >= runs

        _wait(f"{runs} trajectories of {self.loop.config}", there)

    def until_evaluated(self) -> None:
        """Wait until every trajectory and all feedback is evaluated; raises StoreError."""

        def there() -> bool:
            self.view.catch_up(self.bus)
            return evaluator_lag(self.bus, self.view) == 0

        _wait(f"the rewards of {self.loop.config}", there)
        self.view.catch_up(self.bus)


def _wait(what: str, seen: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    until = time.monotonic() + patience_s
    while not seen():
        if time.monotonic() > until:
            raise StoreError(f"waited {patience_s:g} s for {what}")
        time.sleep(0.05)


def demo_command(arguments: Arguments) -> Iterator[str]:
    """Watch three days of an agent become rewards, lessons and deployed versions (extra serve)."""
    require_packages()
    with demo_folder(arguments.into) as folder:
        page = yield from demo(folder, arguments.seed, arguments.tasks, arguments.bus)
        target = Path(arguments.html or (folder / "report.html" if arguments.into else PAGE))
        yield write(target, lambda: write_text(target, page))
        if arguments.into:
            config = quote(str(folder / "killed" / "loop.toml"))
            yield "next: tfgrpo loop show ID; for what it learned: tfgrpo loop report --html FILE"
            yield f"      each command needs: --config {config}"
        else:
            yield "its files are gone; to use the commands above, keep them: tfgrpo loop demo --into DIR"


def demo(folder: Path, seed: int = 0, tasks: int = TASKS, bus: str = "") -> Generator[str, None, str]:
    """Yield what happens while two loops get the traffic of three days, in an empty folder.

    Returns the page of the deployments. `bus` is that of the loop whose service is killed, and of the
    deployments; by default files. Raises StoreError where the two differ, or where something is kept that
    should not be.
    """
    started = time.perf_counter()
    _check_unused(bus)
    prepare(folder, seed)
    traffic = open_traffic(folder, seed, tasks, time.time_ns() - DAYS * DAY_NS)
    killed = _made(folder / "killed", bus)
    calm = _made(folder / "calm", "")
    shutil.copyfile(killed.folder / "loop.key", calm.folder / "loop.key")
    with ExitStack() as ending:
        watches = [_watch(ending, loop) for loop in (killed, calm)]
        for loop in (killed, calm):
            ending.callback(loop.stop)
            loop.start()
        yield f"serving    {tasks} tasks in {SESSIONS} sessions over {DAYS} days, at {killed.address}"
        yield f"           {OPTED_OUT} has opted out; users write keys, addresses and numbers"
        yield from _send(traffic, watches)
        for loop in (killed, calm):
            loop.stop()
        yield ""
        yield from _known(watches[0])
        yield from _compared(watches)
        yield _searched(watches[0], traffic.planted)
        yield ""
        yield from _learn(watches[0], tasks)
        yield ""
        page = yield from _rollout(_watch(ending, _made(folder / "rollout", bus)), killed, bool(bus))
    yield f"done in {time.perf_counter() - started:.1f} s"
    return page


def _check_unused(bus: str) -> None:
    """Raise StoreError for a bus that holds anything: the demo compares all that is on it."""
    if bus:
        with closing(open_bus(bus)) as found:
            used = [stream.name for stream in STREAMS if found.last(stream.name)]
        if used:
            raise StoreError(f"the bus has events in {', '.join(used)}; name an empty one with --bus")


def _rollout(watch: DemoWatch, learned: DemoLoop, shared: bool) -> Generator[str, None, str]:
    """Take three versions to users, and return the page of that.

    A bus that is `shared` with the loop that `learned` gives them later numbers, and v1 is live again in the
    end, so that what was learned can be approved.
    """
    store = load_loop_config(learned.config, {}).store
    taken = [int(row.name[1:]) for row in Policies(watch.bus, FolderArtifacts(Path(store))).listed()]
    yield from rollout_lines(watch.bus, watch.view, max(taken, default=1) + 1)
    watch.view.catch_up(watch.bus)
    page = loop_page("demo", report_of(watch.bus, watch.view, LAST), story_of(watch.bus, store))
    if shared:
        change(watch.bus.table(STATE), ROW, lambda _: None)
        yield "           the demo ends: v1 is live again"
    return page


def _learn(watch: DemoWatch, tasks: int) -> Iterator[str]:
    """Let the loop go on as one that learns: its service runs jobs in the team's suite."""
    loop = watch.loop
    if tasks < THRESHOLD:
        yield f"learning   takes {THRESHOLD} trajectories; see it with --tasks {TASKS}"
        return
    make_suite(loop.folder.parent)
    write_text(loop.config, loop.config.read_text(encoding="utf-8") + training_config())
    jobs = TrainingJobs(watch.bus, "demo")
    loop.start()
    _wait("a training job", lambda: any(job.ended for job in jobs.listed()), JOB_S)
    loop.stop()
    yield from learned_lines(watch.bus, loop.folder, jobs.listed()[0])


def _made(folder: Path, bus: str) -> DemoLoop:
    """Return a loop that is configured as a user does it, for a demonstration's patience."""
    folder.mkdir()
    write_key(folder / "loop.key")
    lines = [
        "[service]",
        "port = 0",
        "[assembler]",
        "idle_s = 1",
        "settle_s = 0.2",
        "[evaluator]",
        "lease_s = 1",
    ]
    lines += ["[bus]", f"url = {json.dumps(bus)}"] if bus else []
    write_text(folder / "loop.toml", "\n".join(lines) + "\n")
    return DemoLoop(folder)


def _watch(ending: ExitStack, loop: DemoLoop) -> DemoWatch:
    config = load_loop_config(loop.config, {})
    bus = ending.enter_context(closing(open_bus(config.bus_spec, options=config.bus_options())))
    OptOuts(bus, LoopScrubber(config.key())).add(user=OPTED_OUT)
    # a view of its own: that of the service is the service's
    view = ending.enter_context(closing(LoopView(loop.folder / "watched.db")))
    return DemoWatch(loop, bus, view)


def _send(traffic: DemoTraffic, watches: Sequence[DemoWatch]) -> Iterator[str]:
    """Send each day's spans, then what users say of it; kill the first loop's service on the second day."""
    runs, killed = 0, False
    for day, requests in itertools.groupby(traffic.requests(), key=lambda request: request.day):
        for request in requests:
            if request.path == "/v1/traces":
                runs += request.runs
            else:
                for watch in watches:
                    watch.until_assembled(runs)
            if day == 1 and not killed:
                yield from _kill(watches[0].loop, request)
                killed = True
            for watch in watches:
                watch.loop.post(request)
        for watch in watches:
            watch.until_assembled(runs)
            watch.until_evaluated()
        yield f"day {day + 1}      {runs} runs of the agent so far, and what users said of them"


def _kill(loop: DemoLoop, request: DemoRequest) -> Iterator[str]:
    """End the service while a request is on its way, and start it again; the exporter sends it once more."""
    sender = threading.Thread(target=_lost, args=(loop, request))
    sender.start()
    time.sleep(0.01)
    loop.kill()
    sender.join()
    loop.start()
    yield "kill -9    of the service while it took spans; then the exporter repeats them"


def _lost(loop: DemoLoop, request: DemoRequest) -> None:
    with suppress(OSError, http.client.HTTPException):
        loop.send(request)


def _known(watch: DemoWatch) -> Iterator[str]:
    """Yield what the loop knows, and one of its trajectories."""
    yield from report_lines(report_of(watch.bus, watch.view, LAST))


def _compared(watches: Sequence[DemoWatch]) -> Iterator[str]:
    """Yield that both loops know the same; raises StoreError where they do not."""
    found = (report_of(watch.bus, watch.view, LAST) for watch in watches)
    first, second = (replace(one, late=0, trajectory_revisions=0) for one in found)  # by the clock
    if first != second:
        raise StoreError("the loop whose service was killed knows something else than the other one")
    yield "killed     and not killed: the same figures, to the last digit"


def _searched(watch: DemoWatch, planted: Sequence[str]) -> str:
    """Return that no secret is in any event or file; raises StoreError where one is."""
    kept = [event.data for stream in STREAMS for event in watch.bus.replay(stream.name)]
    files = (path for path in sorted(watch.loop.folder.iterdir()) if path.name != "loop.key")
    content = b"\n".join([*kept, *(path.read_bytes() for path in files)])
    found = [secret for secret in planted if secret.encode() in content]
    if found:
        raise StoreError(f"{len(found)} of {len(planted)} secrets and names of users are kept")
    return f"secrets    {len(planted)} secrets, addresses and names of users were sent; none is kept"

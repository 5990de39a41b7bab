"""A fluent harness: write a small project, run pytest in it, look at what came out."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import pkgutil
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest import mock

import pytest

import pytest_tfgrpo
from pytest_tfgrpo.cli import main
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.plugin.start import garbage
from pytest_tfgrpo.report.page import html


def import_everything() -> None:
    """Import the whole package: pytest's in-process runs forget modules that they are the first to import."""
    for name in (
        "genai_prices.data",
        "genai_prices.data_snapshot",
        "hypothesis",
        "jinja2",
        "jsonschema",
        "numpy.testing",  # of numpy 1, which asks `lscpu` about the processor
        "opentelemetry.exporter.otlp.proto.http.trace_exporter",
        "opentelemetry.sdk.trace.sampling",
        "requests",
        "pyreqwest.client",
        "pyreqwest.exceptions",
        "regex",
        "yaml",
    ):
        importlib.import_module(name)

    for module in pkgutil.walk_packages(pytest_tfgrpo.__path__, "pytest_tfgrpo."):
        importlib.import_module(module.name)


import_everything()

AGENT = '''
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from pytest_tfgrpo import ProviderError


def _log(context):
    with Path(__file__).with_name("calls.log").open("a") as file:
        file.write(f"{context.scenario.id} {context.seed}\\n")


def right(context):
    _log(context)
    return "3"


def wrong(context):
    _log(context)
    return "4"


def half(context):
    _log(context)
    return "3" if context.seed % 2 else "4"


def _with_tool(answer):
    tool = "count_words" if answer == "3" else "guess"
    return {"answer": answer, "frames": [{"kind": "tool", "name": tool, "output": answer, "tokens": 2}]}


def learner(context):
    """Right on some seeds, and always once the prompt carries an experience."""
    _log(context)
    return _with_tool("3" if context.seed % 3 == 0 or "<experiences" in context.prompt.system else "4")


def unlearner(context):
    """Right on most seeds, and never once the prompt carries an experience."""
    _log(context)
    return _with_tool("4" if "<experiences" in context.prompt.system or context.seed % 4 == 0 else "3")


def provider(context):
    raise ProviderError("503 from the provider")


def unsteady(context):
    return provider(context) if context.seed % 2 else "3"


def crash(context):
    raise RuntimeError("the agent fell over")


async def slow(context):
    import asyncio

    _log(context)
    await asyncio.sleep(0.02)
    return half(context)


def paid(context):
    return "3"


paid.paid = True
'''


def _write_no_page(folder: Path, report: Report, run: Run) -> None:
    """Do nothing where a run would write its page."""


LIMITS = {"timeout_s": 20, "rewarder_timeout_s": 20}
"""Settings of all projects: what hangs fails soon. They are in the ini file, which children read too."""


class Project:
    """A project in a temporary folder."""

    def __init__(
        self,
        pytester: pytest.Pytester,
        environ: pytest.MonkeyPatch,
        root: Path | None = None,
        *,
        pages: bool = False,
    ) -> None:
        self.pytester = pytester
        self._environ = environ
        self._pages = pages
        self._task_id: str | None = None
        self.plugins()
        self.root = root or pytester.path
        (self.root / "agent.py").write_text(AGENT)
        self.ini(actor="python:agent:right")

    @contextlib.contextmanager
    def beside(self, root: Path) -> Iterator[Project]:
        """Make a new project in another folder, the working folder until the end, and then forget it."""
        with pytest.MonkeyPatch.context() as environ, contextlib.chdir(root):
            yield Project(self.pytester, environ, root, pages=self._pages)

    def name_task(self, task_id: str) -> Project:
        """Write this task into the ini file wherever that names none."""
        self._task_id = task_id
        return self.ini(actor="python:agent:right")

    def plugins(self, *names: str) -> Project:
        """Load these plugins beside ours; setting up all that are installed takes each run 0.1 s."""
        self._environ.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        self._environ.setenv("PYTEST_ADDOPTS", " ".join(f"-p {name}" for name in ("tfgrpo", *names)))
        return self

    def pages(self) -> Project:
        """Have the runs of `run` and `learn` write ``report.html``, a tenth of the time of a small run."""
        self._pages = True
        return self

    def ini(self, **settings: object) -> Project:
        if self._task_id is not None:
            settings = {"task_id": self._task_id} | settings
        settings = LIMITS | settings
        lines = [f"tfgrpo_{name} = {value}\n" for name, value in settings.items()]
        (self.root / "pytest.ini").write_text("".join(["[pytest]\n", *lines]))
        return self

    def scenarios(self, name: str = "suite", *, train: int = 2, sweep: int = 2, **fields: Any) -> Project:
        """Write a file of scenarios whose answer is 3."""
        prompt = f"How many words has {{split}} letter {{n}} of {name}, a b c?"
        return self.tasks(f"{name}-{{split}}{{n}}", prompt, name, train=train, eval=sweep, fields=fields)

    def tasks(
        self,
        id_: str = "{split}{n}",
        prompt: str = "How many words has {split} letter {n}, a b c?",
        name: str = "suite",
        *,
        fields: Mapping[str, Any] = MappingProxyType({}),
        **counts: int,
    ) -> Project:
        """Write a file of so many scenarios of each split, whose answer is 3."""
        places = [{"split": split, "n": n} for split, count in counts.items() for n in range(count)]
        same = {"domain": "text", "checks": [{"kind": "exact", "value": "3"}], **fields}
        values = [
            {"id": id_.format(**at), "split": at["split"], "prompt": prompt.format(**at)} | same
            for at in places
        ]
        return self.write(f"{name}.scenario.json", json.dumps(values, indent=1))

    def write(self, name: str, text: str) -> Project:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return self

    def agent(self, source: str) -> Project:
        """Write the module ``agent2``."""
        return self.write("agent2.py", source)

    def conftest(self, source: str) -> Project:
        return self.write("conftest.py", source)

    def checker(self, source: str) -> Project:
        """Write the test module ``test_agent``, which has `pytest`, `tfgrpo` and the arguments of a mark."""
        mark = """MARK = dict(domain="text", prompt="How many words has 'a b c'?")"""
        return self.write(
            "test_agent.py", f"import pytest\nimport pytest_tfgrpo as tfgrpo\n\n{mark}\n{source}"
        )

    def run(self, *args: str) -> pytest.RunResult:
        """Run pytest in this process."""
        with contextlib.ExitStack() as replaced:
            # All is frozen: it would count the objects, which takes a quarter of a small run, and do nothing.
            replaced.enter_context(mock.patch.object(garbage, "spare_lasting", contextlib.ExitStack))
            if not self._pages:
                replaced.enter_context(mock.patch.object(html, "write_page", _write_no_page))
            done = self.pytester.runpytest_inprocess(
                "-p", "no:cacheprovider", "--capture=sys", *args, *self.sweeps(args)
            )
        if "-n" in args:  # workers leave open pipes in cycles, of which a later test would hear
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                gc.collect()
        return done

    def learn(self, *args: str) -> pytest.RunResult:
        return self.run("--tfgrpo", *args)

    def sweeps(self, args: tuple[str, ...]) -> tuple[str, ...]:
        """Return the argument that keeps sweeps of a learning run as small as its groups, for fast tests.

        None where the test says how large they are.
        """
        ini = self.root / "pytest.ini"
        said = "\n".join([*args, ini.read_text() if ini.exists() else ""])
        if "--tfgrpo" not in args or re.search("eval.rollouts", said):
            return ()
        group = re.search(r"tfgrpo.group.size\s*=?\s*(\d+)", said)
        return (f"--tfgrpo-eval-rollouts={group[1] if group else 2}",)

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Start a learning run in a process of its own, whose output and errors are one text."""
        args = ("--tfgrpo", *args)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args, *self.sweeps(args)]
        return subprocess.Popen(
            command, cwd=self.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def wait_for_rollouts(self, process: subprocess.Popen[str], count: int) -> None:
        """Wait until a run of this process has so many rollouts on file, or the process has ended."""
        deadline = time.monotonic() + 100
        while time.monotonic() < deadline and process.poll() is None:
            journals = list(self.root.glob("out/*/runs/*/journal.jsonl"))
            if journals and journals[-1].read_bytes().count(b'"event":"rollout"') >= count:
                return
            time.sleep(0.002)

    def cli(self, *args: str) -> int:
        """Run the command ``tfgrpo`` in the project; returns its exit code."""
        return main(list(args))

    @property
    def calls(self) -> list[str]:
        """Scenario ids in order of the agent's calls."""
        log = self.root / "calls.log"
        return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []

    def runs(self) -> list[Path]:
        return sorted((self.root / "out").glob("*/runs/*"))

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the data of the events of a kind in the journal of the latest run."""
        journal = self.runs()[-1] / "journal.jsonl"
        lines = journal.read_bytes().splitlines(keepends=True) if journal.exists() else []
        events = [json.loads(line) for line in lines if line.endswith(b"\n")]  # the last one may be torn
        return [event["data"] for event in events if event["event"] == name]

    def report(self) -> dict[str, Any]:
        """Return the report of the latest run."""
        return json.loads((self.runs()[-1] / "report.json").read_text())  # type: ignore[no-any-return]

    def manifest(self) -> dict[str, Any]:
        return json.loads((self.runs()[-1] / "manifest.json").read_text())  # type: ignore[no-any-return]


def item_names(result: pytest.RunResult) -> list[str]:
    """Return the node ids of a ``-v`` run in order."""
    return [
        m[1]
        for line in result.outlines
        if (m := re.match(r"(\S+::.*?) (?:PASSED|FAILED|SKIPPED|ERROR)", line))
    ]

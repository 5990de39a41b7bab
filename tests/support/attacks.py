"""Small projects, one for each way in which a run asks: what the fault campaigns attack."""

from __future__ import annotations

import json
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.fake_model import Body, FakeModel
from support.forks import Forks
from support.project import Project
from support.teachers import asked, operation, says

PYTHON = """
import asyncio
from pathlib import Path

async def solve(context):
    with Path(__file__).with_name("calls.log").open("a") as file:
        file.write(".\\n")
    await asyncio.sleep(0.001)
    right = context.seed % 3 == 0 or "<experiences" in context.prompt.system
    frame = {"kind": "tool", "name": "count" if right else "guess", "tokens": 3, "cost_usd": 0.001}
    return {"answer": "3" if right else "4", "frames": [frame]}
"""
UNSTEADY = PYTHON.replace('"<experiences" in', 'context.seed % 2 and "<experiences" in')
"""Right in a third of its rollouts, and in two thirds with a lesson."""
COMMAND = """read -r job
echo . >> "$CALLS_LOG"
seed=${job##*'"seed": '}
case "${seed%%[,\\}]*}" in *[13579]) echo 3;; *) echo 4;; esac
"""
FUNCTIONS = """
@pytest.mark.parametrize("n", range(3))
@pytest.mark.tfgrpo(domain="text", split="eval", prompt="How many words has 'a b {n}'?")
def test_it(rollout, n):
    assert rollout.answer == "3"

@pytest.mark.parametrize("n", range(3))
@pytest.mark.tfgrpo(domain="text", split="train", prompt="How many words has 'a c {n}'?")
def test_that(rollout, n):
    assert rollout.answer == "3"
"""
LESSON = "For letters: count each of the words, one by one."
RUBRIC = ["The answer is 3."]
SMALL = {"group_size": 2, "eval_rollouts": 2, "epochs": 2, "concurrency": 4, "task_id": "demo"}


def model(body: Body, attempt: int) -> str:
    """Be pupil, teacher or judge; the same request always has the same answer."""
    if body["model"] == "judge":
        keys = body["response_format"]["json_schema"]["schema"]["properties"]
        return json.dumps({key: {"why": "it is so", "met": body["seed"] % 2 == 0} for key in keys})
    if body["model"] == "teacher":
        if "Several tasks of one domain" in asked(body):
            return says(operation(lesson=LESSON, sources=["P1"]))
        return says(operation(lesson=LESSON))
    return "3" if LESSON in body["messages"][0]["content"] or body["seed"] % 3 == 0 else "4"


def python(project: Project) -> None:
    project.agent(PYTHON).tasks(train=4, dev=20, eval=3).ini(actor="python:agent2:solve", **SMALL)


def workers(project: Project) -> None:
    """Agents in worker processes, which end with the run."""
    project.agent(PYTHON).tasks(train=3, dev=6, eval=3)
    project.ini(actor="python:agent2:solve", executor="process:2", **SMALL)


def offline(project: Project) -> None:
    project.tasks(train=4, dev=20, eval=3).ini(actor="offline", **SMALL)


def command(project: Project) -> None:
    project.write("agent.sh", COMMAND).tasks(train=3, eval=3)
    project.ini(actor="command:sh agent.sh", **SMALL)


def functions(project: Project) -> None:
    project.agent(PYTHON).checker(FUNCTIONS).ini(actor="python:agent2:solve", **SMALL)


def openai(project: Project) -> None:
    project.tasks(train=3, dev=20, eval=3, fields={"rubric": RUBRIC})
    models = {"actor": "openai:pupil", "teacher": "openai:teacher", "judge": "openai:judge"}
    project.ini(**models, **SMALL | {"epochs": 1, "eval_mode": "separate", "optimizer": "llm"})


def xdist(project: Project) -> None:
    python(project)
    with (project.root / "pytest.ini").open("a") as file:
        file.write("addopts = -p xdist -n 1\n")


def replay(project: Project) -> None:
    python(project)
    assert project.learn("--tfgrpo-record=recording.jsonl").ret == 0
    shutil.rmtree(project.root / "out")
    project.ini(actor="replay:recording.jsonl", **SMALL)


def extended(project: Project) -> None:
    """A gate with a baseline that asks both sweeps for more rollouts, twice."""
    own = {"actor": "python:agent2:solve", "allow_paid": "true", **SMALL}
    project.agent(UNSTEADY).tasks(train=4, eval=8).ini(**own, min_score=0)
    assert project.run("--tfgrpo-out=out").ret == 0
    assert project.cli("baseline", "save", "main") == 0
    shutil.rmtree(project.root / "out")
    project.ini(**own, baseline="main", gate_alarm=0.0001, gate_margin=0)


KINDS: dict[str, Callable[[Project], None]] = {
    kind.__name__: kind
    for kind in (python, workers, offline, command, functions, openai, replay, xdist, extended)
}
TIMES_AND_IDS = re.compile(r"latency|seconds|_at$|^(.*_)?id$|^(parents|manifest_path|evaluations|origins)$")


def outcome(root: Path) -> dict[str, Any]:
    """Return what the one run of a project left, without times, ids and paths; asserts that it is whole."""
    (folder,) = (root / "out/demo/runs").iterdir()
    assert not list(root.glob("out/**/.*.tmp"))
    assert not list(root.glob("out/**/work"))
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_bytes().splitlines()]
    assert [line["n"] for line in lines] == list(range(1, len(lines) + 1))
    assert lines[-1]["event"] == "finish"
    done, given_up = (
        Counter(line["data"]["rollout_id"] for line in lines if line["event"] == event)
        for event in ("rollout", "abandoned")
    )
    repeated = [id_ for id_, count in done.items() if count > 1 + given_up[id_]]
    assert not repeated, "a finished rollout was repeated"
    names = ("report.json", "per-epoch.json", "manifest.json", "../../library.json")
    texts = {name: (folder / name).read_text().replace(folder.name, "RUN") for name in names}
    found = {name: clean(json.loads(text)) for name, text in texts.items()}
    metrics = (folder / "metrics.jsonl").read_text().replace(folder.name, "RUN").splitlines()
    store = (root / "out/demo/experiences.jsonl").read_text().splitlines()
    return found | {
        "metrics": sorted(json.dumps(clean(json.loads(line))) for line in metrics),
        "store": sorted(json.dumps(clean(json.loads(line))) for line in store),
        "rollouts": sorted(id_.replace(folder.name, "RUN") for id_ in done),
    }


def clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: clean(one) for key, one in value.items() if not TIMES_AND_IDS.search(key)}
    if isinstance(value, list):  # a store that a kill tore is repaired, and says so
        value = [one for one in value if "an incomplete last line of " not in str(one)[-120:]]
    if isinstance(value, str) and re.fullmatch("[0-9a-f]{16}", value):
        return "ID"
    return [clean(one) for one in value] if isinstance(value, list) else value


def on_file(root: Path) -> Counter[str]:
    """Return how many events of each kind the journal has."""
    return Counter(line["event"] for line in journal_of(root))


def answers_on_file(root: Path, planned: Iterable[str]) -> int:
    """Return how many answers of agents and models the journal has that nobody asks for again.

    Those are not greetings, and not one side of a pair of control and final sweep whose other side is not
    there; `planned` has the ids of all rollouts, with RUN in place of the run's.
    """
    journal = journal_of(root)
    calls = [line["data"]["key"] for line in journal if line["event"] == "call"]
    made = {
        line["data"]["rollout_id"].replace(line["data"]["run_id"], "RUN")
        for line in journal
        if line["event"] == "rollout"
    }
    sides: dict[str, set[str]] = {}
    swept = [match for id_ in planned if (match := re.fullmatch(r"RUN\.e(\d+)\.(.*)", id_))]
    last = max(int(match[1]) for match in swept)
    for match in swept:
        if int(match[1]) in (0, last):
            sides.setdefault(match[2], set()).add(match[0])
    torn = {id_ for pair in sides.values() if not pair <= made for id_ in pair & made}
    return sum(not key.startswith("hello.") for key in calls) + len(made - torn)


def journal_of(root: Path) -> list[dict[str, Any]]:
    """Return the whole lines of the journal, if there is one."""
    journals = list((root / "out/demo/runs").glob("*/journal.jsonl"))
    lines = journals[0].read_bytes().splitlines(keepends=True) if journals else []
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def differences(one: Any, other: Any, at: str = "") -> list[str]:
    """Return where two outcomes differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted(one.keys() | other.keys())
        return [text for key in keys for text in differences(one.get(key), other.get(key), f"{at}/{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [text for n, pair in pairs for text in differences(*pair, f"{at}/{n}")]
    return [] if one == other else [f"{at}: {one!r:.300} != {other!r:.300}"]


KILLER = ("--tfgrpo", "-p", "support.killer")
RESUME = ("--tfgrpo", "--tfgrpo-resume")


@dataclass
class Attacked:
    """A kind of project, what its run comes to, and how often it reaches each place."""

    project: Project
    forks: Forks
    server: FakeModel | None
    expected: dict[str, Any] = field(default_factory=dict)
    counted: dict[str, int] = field(default_factory=dict)
    events: Counter[str] = field(default_factory=Counter)
    asked: int = 0
    code: int = 0
    attacks: int = 0
    wrong: list[str] = field(default_factory=list)

    def refer(self) -> None:
        """Run it undisturbed."""
        self.code, output = self.run(*KILLER)
        assert self.code in (0, 1), output
        self.expected, self.asked = outcome(self.root), self.questions()
        self.counted, self.events = json.loads(self.mark.read_text()), on_file(self.root)

    @property
    def root(self) -> Path:
        return self.project.root

    @property
    def mark(self) -> Path:
        return self.root / "mark"

    def run(self, *args: str, **env: str) -> tuple[int, str]:
        return self.forks.run(self.root, args, KILL_MARK=str(self.mark), **env)

    def questions(self) -> int:
        """Return how often the actor, and models, were asked so far."""
        if self.server is not None:
            return len(self.server.requests)
        log = self.root / "calls.log"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def changes(self) -> list[str]:
        """Return where the outcome differs; not in its cost, where torn pairs were asked again."""
        found, expected = outcome(self.root), self.expected
        made = Counter(
            line["data"]["rollout_id"] for line in journal_of(self.root) if line["event"] == "rollout"
        )
        if max(made.values(), default=1) > 1:
            found, expected = (
                {**o, "report.json": {**o["report.json"], "cost": None}} for o in (found, expected)
            )
        return differences(found, expected)

    def reset(self) -> None:
        self.mark.unlink(missing_ok=True)
        shutil.rmtree(self.root / "out", ignore_errors=True)

    def kill(self, point: str, delay_s: float = 0.0) -> bool:
        """Start or resume a run and kill it at a point; returns whether it came so far."""
        self.mark.unlink(missing_ok=True)
        words = (*KILLER, *RESUME[1:]) if on_file(self.root)["run"] else KILLER
        code, output = self.run(*words, KILL=point, KILL_DELAY_S=str(delay_s))
        assert code == -signal.SIGKILL or not self.mark.exists(), output
        return code == -signal.SIGKILL

    def finish(self) -> None:
        """Resume the run, or start it if it had not begun; asserts that it ends as it would have."""
        begun = on_file(self.root)["run"]
        code, output = self.run(*RESUME)
        if code == pytest.ExitCode.USAGE_ERROR:
            assert "no incomplete run" in output  # it had not begun, or was already reported
            if not begun:
                shutil.rmtree(self.root / "out", ignore_errors=True)
                code, output = self.run("--tfgrpo")
        assert code in (self.code, pytest.ExitCode.USAGE_ERROR), output

    def survive(self, told: str, attack: Callable[[], object]) -> None:
        """Attack, and note what went wrong."""
        self.attacks += 1
        self.reset()
        try:
            attack()
        except Exception as error:
            self.wrong.append(f"{told}: {error!r:.3000}")

    def conclude(self) -> None:
        """Assert that all attacks were survived."""
        print(f"{self.attacks} attacks, {len(self.wrong)} not survived")
        assert not self.wrong, "\n".join(self.wrong)


def attacked(
    kind: str, project: Project, forks: Forks, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Attacked]:
    monkeypatch.setenv("CALLS_LOG", str(project.root / "calls.log"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-Zq8vWn3xKd7LpR2m")
    with FakeModel(model) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        KINDS[kind](project)
        one = Attacked(project, forks, server if kind == "openai" else None)
        (project.root / "calls.log").write_text("")
        one.refer()
        yield one

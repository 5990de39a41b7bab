"""Servers that go away in every phase of a run, for a moment and for good, and come back for the resume."""

import itertools
import json
import re
import shutil
import time
from collections.abc import Callable
from typing import Any

import pytest
from support import fake_model
from support.campaign import Campaign
from support.fake_model import Body, FakeModel, Reply, Serve, refused
from support.project import Project
from support.teachers import asked, operation, says

from pytest_tfgrpo.llm.limits import pace, patience

pytestmark = [
    pytest.mark.faults,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of the connections that the server tears
]

LESSON = "For letters: count each of the words, one by one."
HANGS = "hangs"
PHASES = ("baseline", "training", "critique", "consolidation", "dev", "final", "judge")
FAULTS: dict[str, Reply | None] = {
    "refuses": None,
    HANGS: fake_model.SILENT,
    "401": refused(401, "key revoked"),
    "404": refused(404, "no such model"),
    "429": fake_model.rate_limited(),
    "500": refused(500, "out of memory"),
    "garbage": fake_model.NOT_JSON,
}


def models(timeout_s: float) -> str:
    return f"endpoints: {{default: {{retries: 1, timeout_s: {timeout_s}, concurrency: 8}}}}\n"


def phase_of(body: Body) -> str:
    """Return in which phase of a run a request is made."""
    if body["model"] == "judge":
        return "judge"
    if body["model"] == "big":
        return "consolidation" if "Several tasks of one domain" in asked(body) else "critique"
    split = next(split for split in ("train", "dev", "eval") if f"has {split} letter" in asked(body))
    taught = LESSON in body["messages"][0]["content"]
    return {"train": "training", "dev": "dev", "eval": "final" if taught else "baseline"}[split]


def answer(body: Body) -> str:
    phase = phase_of(body)
    if phase == "judge":
        keys = body["response_format"]["json_schema"]["schema"]["properties"]
        return json.dumps({key: {"why": "it is so", "met": body["seed"] % 2 == 0} for key in keys})
    if phase == "consolidation":
        return says(operation(lesson=LESSON, sources=["P1", "P2"]))
    if phase == "critique":
        known = f"| {LESSON}" in asked(body)
        return says(operation("KEEP", "", ids=["L1"]) if known else operation(lesson=LESSON))
    return "3" if LESSON in body["messages"][0]["content"] or body["seed"] % 3 == 0 else "4"


class Dying:
    """Answers until one of the first requests of a phase; then it is away, with a fault, until `back`."""

    def __init__(self, phase: str, fault: str, seconds: float | None) -> None:
        self.server: FakeModel
        self.phase, self.fault, self.seconds = phase, FAULTS[fault], seconds
        self.seen = 0
        self.until = 0.0

    def __call__(self, body: Body, attempt: int) -> Reply | str:
        self.seen += "Answer with the word" not in asked(body) and phase_of(body) == self.phase
        first = {"critique": 2, "consolidation": 1}.get(self.phase, 3)
        if self.phase and self.seen == first and not self.until:
            self.until = time.monotonic() + (1e6 if self.seconds is None else self.seconds)
            if self.fault is None:
                self.server.go_away(self.seconds)
        if time.monotonic() < self.until:
            return self.fault or fake_model.RESET
        return "ok" if "Answer with the word" in asked(body) else answer(body)

    def back(self) -> None:
        self.until, self.phase = time.monotonic(), ""
        self.server.come_back()


@pytest.fixture
def learning(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-Zq8vWn3xKd7LpR2m")
    monkeypatch.setattr(pace, "BACKOFF_S", 0.01)
    project.write("models.yaml", models(100.0))
    settings = {"group_size": 2, "eval_mode": "separate", "epochs": 1, "judge": "openai:judge"}
    settings |= {"models": "models.yaml", "optimizer": "llm", "teacher": "openai:big", "judge_votes": 1}
    project.ini(actor="openai:small", **settings)
    fields = {"rubric": ["The answer is short."]}
    return project.tasks(train=6, dev=20, eval=3, fields=fields)


def comparable(project: Project) -> Any:
    """Return the report without times, ids and the costs of failed attempts."""
    folder = project.runs()[-1]
    report = json.loads((folder / "report.json").read_text().replace(folder.name, "RUN"))
    lost = ("cost", "evaluations", "stamps")

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: clean(part)
                for key, part in value.items()
                if "latency" not in key and not key.endswith(("_at", "id", "parents")) and key not in lost
            }
        if isinstance(value, list):
            return [clean(part) for part in value]
        return "ID" if isinstance(value, str) and re.fullmatch("[0-9a-f]{16}", value) else value

    return clean(report)


def differences(one: Any, other: Any, at: str = "") -> list[str]:
    """Return the places in which two reports differ, with both values."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = one.keys() | other.keys()
        return [line for key in keys for line in differences(one.get(key), other.get(key), f"{at}/{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = zip(one, other, strict=True)
        return [line for n, pair in enumerate(pairs) for line in differences(*pair, f"{at}/{n}")]
    return [] if one == other else [f"{at}: {one!r:.300} {other!r:.300}"]


def fresh(project: Project) -> None:
    shutil.rmtree(project.root / "out", ignore_errors=True)


@pytest.fixture
def undisturbed(learning: Project, serve: Serve) -> Any:
    server = serve(lambda body, attempt: answer(body))
    assert learning.learn().ret == 0
    server.close()
    expected = comparable(learning)
    assert [lesson["text"] for lesson in expected["library"]["lessons"]] == [LESSON]
    assert any(row.get("dev") for row in expected["epochs"])
    fresh(learning)
    return expected


Start = Callable[[Dying], FakeModel]


@pytest.fixture
def start(serve: Serve) -> Start:
    def started(dying: Dying) -> FakeModel:
        dying.server = serve(dying, hello=dying)
        return dying.server

    return started


def test_after_a_moments_absence_the_report_is_that_of_an_undisturbed_run(
    learning: Project, undisturbed: Any, start: Start, campaign: Campaign
) -> None:
    for phase, fault in campaign.sample(itertools.product(PHASES, FAULTS), 6):
        dying = Dying(phase, fault, 0.5)
        learning.write("models.yaml", models(3.0 if fault == HANGS else 100.0))
        server = start(dying)
        result = learning.learn()
        said = f"{phase}, {fault}: {result.stdout.str()}"
        assert result.ret == 0, said
        assert dying.until, said
        assert differences(comparable(learning), undisturbed) == [], (phase, fault)
        server.close()
        fresh(learning)


def test_after_a_lasting_absence_the_run_is_incomplete_and_the_resumed_one_undisturbed(
    learning: Project, undisturbed: Any, start: Start, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "TOTAL_S", 0.3)
    for phase, fault in campaign.sample(itertools.product(PHASES, FAULTS), 6):
        dying = Dying(phase, fault, None)
        learning.write("models.yaml", models(3.0 if fault == HANGS else 100.0))
        server = start(dying)
        result = learning.learn()
        said = f"{phase}, {fault}: {result.stdout.str()}"
        assert result.ret == pytest.ExitCode.TESTS_FAILED, said
        assert learning.report()["status"] == "incomplete", said
        assert learning.report()["gate"]["outcome"] == "fail", said
        again = learning.learn("--tfgrpo-resume")
        assert again.ret == pytest.ExitCode.TESTS_FAILED, again.stdout.str()
        assert learning.report()["status"] == "incomplete", said
        monkeypatch.setattr(patience, "TOTAL_S", 30.0)
        dying.back()
        last = learning.learn("--tfgrpo-resume")
        assert last.ret == 0, f"{phase}, {fault}: {last.stdout.str()}"
        assert differences(comparable(learning), undisturbed) == [], (phase, fault)
        assert len(learning.runs()) == 1
        monkeypatch.setattr(patience, "TOTAL_S", 0.3)
        server.close()
        fresh(learning)


def test_one_prompt_that_a_server_never_answers_ends_nothing(
    learning: Project, serve: Serve, campaign: Campaign
) -> None:
    cases = [(phase, fault) for phase in ("baseline", "training", "dev") for fault in ("500", "garbage")]
    for phase, fault in campaign.sample(cases, 2):
        letter = {"baseline": "eval letter 1", "training": "train letter 2", "dev": "dev letter 7"}[phase]
        reply = FAULTS[fault]
        assert reply is not None

        def choosy(body: Body, attempt: int, letter: str = letter, reply: Reply = reply) -> Reply | str:
            return reply if body["model"] == "small" and letter in asked(body) else answer(body)

        server = serve(choosy)
        learning.learn()
        report = learning.report()
        assert report["status"] == "complete", f"{phase}, {fault}: {report['reason']}"
        assert set(report["faults"]["errors"]) == {"server" if fault == "500" else "bad_response"}
        server.close()
        fresh(learning)

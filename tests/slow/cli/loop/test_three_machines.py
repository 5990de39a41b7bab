"""Three machines on one NATS server, as docs/feedback-loop.md sets them up: one holder a job, none twice."""

from __future__ import annotations

import json
import re
import shutil
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support import ROOT
from support.buses import NatsPlace
from support.documentation import text_of
from support.examples import blocks_of
from support.feedback.training_service import Service, kill_run, make_project, wait
from support.loop_events import payloads
from support.otlp_spans import agent, line, span
from support.tools import tfgrpo

from pytest_tfgrpo.production.bus.registry import open_bus

pytestmark = pytest.mark.timeout(500)

PATIENCE_S = 200.0
TASKS = ("figs", "plums", "pears", "limes")
TOKEN = "put-a-secret-here"
ADA = ("--by", "ada", "--reason", "read the report")


class Machine(Service):
    """A machine with a folder of its own, and the ``loop.toml`` that the page gives it."""

    def __init__(self, folder: Path, kind: str, place: NatsPlace, key: Path) -> None:
        super().__init__(folder)
        folder.mkdir(exist_ok=True)
        page = text_of(ROOT / "docs" / "feedback-loop.md")
        (text,) = (block.text for block in blocks_of(page) if {"loop", kind} <= {*block.words})
        text = text.replace("nats://10.0.0.4:4222", place.server.url).replace("0.0.0.0", "127.0.0.1")
        text = text.replace("s3://models/agent", str(key.parent / "store")).replace("../my-suite", "suite")
        service = "[service]\nport = 0" if "[service]" not in text else ""
        text = text.replace("[service]", "[service]\nport = 0")
        faster = "[evaluator]\nlease_s = 2\n[assembler]\nsettle_s = 0.5\nidle_s = 5\n"
        jobs = 'triggers = []\nsafety = ["bias"]\n'
        (folder / "loop.toml").write_text(f"{text}{jobs}{service}\n{faster}")
        if key.parent != folder:
            shutil.copyfile(key, folder / "loop.key")

    def started(self) -> Machine:
        self.start()
        self.until(lambda: "http://" in self.log)
        return self

    @property
    def log(self) -> str:
        return (self.folder / "serve.log").read_text()

    def until(self, seen: Callable[[], Any]) -> Any:
        end = time.monotonic() + PATIENCE_S
        while not (found := seen()):
            assert time.monotonic() < end, self.log
            time.sleep(0.1)
        return found

    def post(self, *spans: dict[str, Any]) -> None:
        (url,) = re.findall(r"http://[0-9.:]+", self.log)[-1:]
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
        request = urllib.request.Request(f"{url}/v1/traces", line(*spans).encode(), headers)
        with urllib.request.urlopen(request, timeout=100) as answer:
            assert answer.status == 200

    def run(self, *command: str, code: int = 0) -> str:
        return tfgrpo("loop", *command, "--config", str(self.folder / "loop.toml"), code=code)

    def report(self, trajectories: int) -> Any:
        """Return the report once it has so many trajectories, and a reward of each."""

        def whole() -> Any:
            found = json.loads(self.run("report", "--json"))
            return found if found["rewards"] >= trajectories else None

        return self.until(whole)

    def holders(self) -> dict[str, int]:
        """Return the process that holds each job's lease."""
        jobs = json.loads(self.run("status", "--json"))["jobs"]
        return {name: int(job["holder"].split("-")[-2]) for name, job in jobs.items() if job["holder"]}


def spans_of(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the agent's span of a trace, and that of its answer, which another machine gets."""
    trace, task, right = f"{number + 1:032x}", TASKS[number % 4], number // 4 % 2 == 0
    said = {
        f"gen_ai.{side}.messages": json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])
        for side, role, text in (
            ("input", "user", f"How many {task} are on 2 trays of 3?"),
            ("output", "assistant", "6" if right else "5"),
        )
    }
    given = {
        "tfgrpo.task_status": "completed_successfully" if right else "failed",
        "tfgrpo.task_key": task,
        "tfgrpo.domain": "general",
        "session.id": f"chat-{number}",
        "user.id": f"user-{number}@example.org",
        **said,
    }
    return agent(trace=trace, attributes=given), span(3, "chat", trace=trace, attributes=said)


@pytest.fixture
def machines(
    tmp_path: Path, on_nats: NatsPlace, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Machine, Machine, Machine]]:
    third = tmp_path / "three"
    third.mkdir()
    monkeypatch.chdir(third)
    make_project(third)
    kinds = {"one": "door", "two": "door", "three": "trainer"}
    made = [Machine(tmp_path / name, kind, on_nats, third / "loop.key") for name, kind in kinds.items()]
    yield made[0], made[1], made[2]
    for machine in made:
        machine.end(signal.SIGKILL)
    kill_run(third)


def test_three_machines_share_one_bus_and_one_that_is_lost_is_replaced(
    machines: tuple[Machine, Machine, Machine], on_nats: NatsPlace, tmp_path: Path
) -> None:
    one, two, three = machines
    for machine in (one, two):
        machine.started()
    for number in range(12):
        for machine, sent in zip((one, two)[:: 1 - 2 * (number % 2)], spans_of(number), strict=True):
            machine.post(sent)
    found = two.report(12)
    assert found["published"]["RL_TRAJECTORIES"] == 12
    assert found == one.report(12), "both read the same bus"
    holders = one.holders()
    lost = one if holders["evaluator"] == one.process.pid else two  # type: ignore[union-attr]
    left = two if lost is one else one
    killed = lost.process.pid  # type: ignore[union-attr]
    lost.end(signal.SIGKILL)
    three.started()
    for number in range(12, 24):
        left.post(*spans_of(number))
    found = left.report(24)
    assert (found["published"]["RL_TRAJECTORIES"], found["published"]["RL_REWARDS"]) == (24, 24)
    assert found["revisions"] == 0
    assert killed not in left.holders().values()
    job = re.search(r"[0-9a-f]{8}-[0-9a-f-]{27}", left.run("train"))
    assert job
    with closing(open_bus(f"nats:{on_nats.server.url}")) as bus:
        assert wait(bus, three.folder, job=job[0]) == "completed", three.log
        assert re.search(r"^v2 ", left.run("versions", "list"), re.MULTILINE)
        left.run("approve", "v2", "--emergency-override", *ADA)
        assert "v2 meets" in three.run("status")
        assert [one["metadata"]["state"] for one in payloads(bus, "RL_DEPLOYMENTS")] == ["canary"]
    for machine in (left, three):
        machine.end(signal.SIGTERM)
        assert "what was accepted is on the bus" in machine.log
        assert "Traceback" not in machine.log

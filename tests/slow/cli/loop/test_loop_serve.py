"""``tfgrpo loop serve`` as a process: from spans over HTTP to rewards, and to nothing again."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.buses import BusPlace, NatsPlace, bytes_in
from support.loop_process import Served
from support.otlp_spans import agent, line
from support.tools import tfgrpo

USER, SESSION = "bob.ross@example.com", "session-of-bob-1"
SECRET = "alice@example.org"


@pytest.fixture
def project(tmp_path: Path, place: BusPlace, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the settings for one of the buses."""
    monkeypatch.chdir(tmp_path)
    tfgrpo("loop", "init")
    url = f"nats:{place.server.url}" if isinstance(place, NatsPlace) else f"embedded:{place.folder}/bus.db"
    Path("loop.toml").write_text(f"[bus]\nurl = '{url}'\n[service]\nport = 0\n[evaluator]\nlease_s = 1\n")
    return tmp_path


@pytest.fixture
def served(project: Path) -> Iterator[Served]:
    running = Served()
    yield running
    running.stop(signal.SIGKILL)


def run(number: int, user: str, session: str) -> dict[str, object]:
    """Return the span of a run whose answer has somebody's address in it."""
    said = [{"role": "assistant", "parts": [{"type": "text", "content": f"Write to {SECRET}"}]}]
    attributes = {
        "user.id": user,
        "session.id": session,
        "gen_ai.output.messages": json.dumps(said),
        "tfgrpo.task_key": "letters",
        "tfgrpo.task_status": "completed_successfully",
    }
    return agent(number, trace=f"{number:032x}", attributes=attributes)


def seen(command: str, meets: Callable[[Any], bool]) -> Any:
    """Return what a command prints as JSON, once it meets a condition."""
    until = time.monotonic() + 100
    while not meets(found := json.loads(tfgrpo("loop", command, "--json"))):
        assert time.monotonic() < until, found
        time.sleep(0.2)
    return found


def report_once(trajectories: int, rewards: int) -> Any:
    """Return the report once it has so many trajectories and rewards."""
    expected = {"RL_TRAJECTORIES": trajectories, "RL_REWARDS": rewards}
    return seen("report", lambda found: expected.items() <= found["published"].items())


def in_step(status: Any) -> bool:
    """Return whether both jobs are done, and held."""
    return all(job["holder"] and not job["behind"] for job in status["jobs"].values())


def test_spans_become_rewards_and_are_forgotten(project: Path, place: BusPlace, served: Served) -> None:
    tfgrpo("loop", "opt-out", "add", "--user", "carol@example.com")
    spans = [run(n, USER, SESSION) if n < 3 else run(n, "dave", "session-d") for n in range(1, 5)]
    served.post("/v1/traces", line(*spans, run(5, "carol@example.com", "session-c")))
    found = report_once(4, 4)
    assert found["opted_out"] == 1
    assert set(found["redacted"]) == {"email"}
    id_ = found["worst"][0]["worst"][0]
    said = {
        "feedback_id": "3f2504e0-4f89-41d3-9a0c-0305e82c3307",
        "trajectory_id": id_,
        "timestamp": "2027-01-15T08:00:00Z",
        "type": "thumbs_down",
    }
    assert served.post("/feedback", json.dumps(said))["accepted"] == 1
    assert report_once(4, 5)["revisions"] == 1
    shown = tfgrpo("loop", "show", id_)
    assert "Write to [redacted:email:" in shown
    assert "revision 2" in shown
    assert set(seen("status", in_step)["jobs"]) == {"assembler", "evaluator"}
    forgot = tfgrpo("loop", "forget", "--user", USER).split()
    assert "2 trajectories" in " ".join(forgot)
    out, err = served.stop()
    assert (out, err, served.code) == ("stopped    what was accepted is on the bus\n", "", 0)
    assert json.loads(tfgrpo("loop", "report", "--json"))["published"]["RL_TRAJECTORIES"] == 2
    assert {job["holder"] for job in json.loads(tfgrpo("loop", "status", "--json"))["jobs"].values()} == {""}
    for folder in (project, place.folder):
        for needle in (USER, SESSION, SECRET, "carol@example.com", "session-c"):
            assert not bytes_in(folder, needle.encode())


def test_a_service_without_a_key_or_with_a_mistake_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "there is no key loop.key; write one with `tfgrpo loop init`" in tfgrpo("loop", "serve", code=1)
    tfgrpo("loop", "init", "--force")
    (tmp_path / "loop.toml").write_text("[service]\nhost = '0.0.0.0'\n")
    assert "has no token" in tfgrpo("loop", "serve", code=1)
    assert not list(tmp_path.glob("*.db"))

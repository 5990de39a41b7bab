"""A Prometheus server that scrapes the service, and a service without one."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.feedback.metrics import dead, job_status, run_of
from support.loop_events import publish, rewarded
from support.prometheus import PrometheusServer
from support.tools import tfgrpo

from pytest_tfgrpo.production.bus.embedded.bus import open_embedded
from pytest_tfgrpo.production.sinks.dashboards.files import observing_files
from pytest_tfgrpo.production.sinks.dashboards.panels import PAGES

TOKEN = "correct-horse-battery"
PROGRAM = "import sys; from pytest_tfgrpo.cli import main; sys.exit(main(['loop', 'serve']))"


class LoopWithAlerts:
    """A folder of a loop, and the service in it."""

    def __init__(self, folder: Path, command: str) -> None:
        tfgrpo("loop", "init", str(folder))
        self.folder = folder
        (folder / "loop.toml").write_text(
            f"[service]\nport = 0\ntoken = '{TOKEN}'\n[alerts]\ncommand = {command}\n"
            "[evaluator]\nlease_s = 1\n"
        )

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], cwd=self.folder, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().split()[1].rstrip(",")

    def end(self, number: int) -> None:
        if self._process.poll() is None:
            os.kill(self._process.pid, number)
        self._process.communicate(timeout=100)

    def publish(self, *events: object) -> None:
        with closing(open_embedded(self.folder / "loop-bus.db")) as bus:
            publish(bus, *events)  # type: ignore[arg-type]

    def health(self) -> dict[str, str]:
        with urllib.request.urlopen(f"{self.url}/healthz", timeout=10) as answer:
            found: dict[str, str] = json.load(answer)["parts"]
            return found


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[LoopWithAlerts]:
    script = "import sys; open('alerts.log', 'a').write(sys.stdin.read() + chr(10))"
    found = LoopWithAlerts(tmp_path / "loop", json.dumps([sys.executable, "-c", script]))
    found.start()
    yield found
    found.end(signal.SIGKILL)


def test_prometheus_scrapes_the_service_and_a_kill_loses_nothing(
    loop: LoopWithAlerts, tmp_path: Path
) -> None:
    collected = "sum(agent_rl_trajectories_collected_total)"
    name = 'agent "x"\\ of\nmine'
    with closing(open_embedded(loop.folder / "loop-bus.db")):
        pass
    loop.publish([run_of(name, f"a{n}") for n in range(7)], [rewarded("a0", 0.5)], [dead(1)])
    server = PrometheusServer(tmp_path / "prometheus", loop.url.removeprefix("http://"), TOKEN)
    (tmp_path / "prometheus" / "loop-alerts.yml").write_text(observing_files()["loop-alerts.yml"])
    with server:
        server.until(lambda: server.query(collected) == [({}, 7.0)])
        ((labels, value),) = server.query("agent_rl_trajectories_collected_total")
        assert (labels["agent_type"], labels["task_domain"], value) == ('agent "x"\\ of mine', "coding", 7.0)
        assert server.query("agent_rl_trajectory_reward_sum")[0][1] == 0.5
        loop.publish([job_status("a", "failed")])
        server.until(lambda: 'alertname="LoopTrainingFailed"' in _alerts(server))
        for page in PAGES:
            for panel in json.loads(observing_files()[page.file])["panels"]:
                for query in panel["targets"]:
                    server.query(query["expr"].replace("$job", "loop"))
        loop.end(signal.SIGKILL)
        port = loop.url.rpartition(":")[2]
        (loop.folder / "loop.toml").write_text(
            (loop.folder / "loop.toml").read_text().replace("port = 0", f"port = {port}")
        )
        loop.publish([run_of(name, f"b{n}") for n in range(3)])
        loop.start()
        server.until(lambda: server.query(collected) == [({}, 10.0)])
        assert server.query("resets(agent_rl_trajectory_length_count[5m])")[0][1] == 0.0
    said = [json.loads(line) for line in (loop.folder / "alerts.log").read_text().splitlines()]
    assert [one["alert"] for one in said].count("training_failed") == 1
    assert loop.health()["loopmetrics"] == "ok"


def _alerts(server: PrometheusServer) -> str:
    firing = [metric for metric, _ in server.query('ALERTS{alertstate="firing"}')]
    return " ".join(f'alertname="{one["alertname"]}"' for one in firing)

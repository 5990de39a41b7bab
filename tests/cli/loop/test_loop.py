"""The commands ``tfgrpo loop ...``."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support import ROOT
from support.buses import bytes_in
from support.loop_events import feedback, judged, publish, trajectory
from support.tools import tfgrpo

from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.production import forget
from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.evaluation.evaluator import Evaluator
from pytest_tfgrpo.production.service.limits import ListeningAddress, ServiceLimits
from pytest_tfgrpo.production.view.view import LoopView

RECORDED = ROOT / "tests" / "telemetry" / "traces" / "recorded"
STATUSES = ("completed_successfully", "failed", "completed_successfully", "partial_completion", "unknown")
ANSWER = "Write to [redacted:email:0a1b2c].\n\x1b[2Jdef f():\n    return 1\n" + "It works. " * 100


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bus: 60 attempts at 10 tasks by two versions, feedback, and rewards of them all."""
    folder = tmp_path_factory.mktemp("filled")
    runs = [
        trajectory(
            f"{'abcdefghij'[n % 10]}{n}",
            turns=1 + n % 4,
            domain=("coding", "general")[n % 2],
            session=f"chat-{n % 17}",
            user="u-0123456789abcdef",
            text=ANSWER,
            metadata={"policy_version": ("v1", "v2")[n >= 30], "total_tokens": 512, "total_cost_usd": 0.002},
            task_status=STATUSES[n * 7 % 13 % 5],
        )
        for n in range(60)
    ]
    said = [
        feedback("x", "rating", "a0", rating=4, text="close\x00", expected={"orders": [17]}, source="human"),
        judged("j", "a0", style=0.5),
        feedback("y", "thumbs_up", "nobody"),
    ]
    bus = open_bus(f"embedded:{folder / 'loop-bus.db'}")
    publish(bus, runs, said)
    view = LoopView(folder / "loop-view.db")
    evaluator = Evaluator(bus, view, "host-1-abc", settle_s=0)
    for _ in range(10):
        evaluator.step()
    evaluator.close()
    view.close()
    bus.close()
    return folder


@pytest.fixture
def served(filled: Path, project: Path) -> Path:
    """The project, with that bus."""
    shutil.copytree(filled, project, dirs_exist_ok=True)
    return project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that ``tfgrpo loop init`` was run in."""
    monkeypatch.chdir(tmp_path)
    tfgrpo("loop", "init")
    return tmp_path


def test_init_keeps_what_exists_and_the_key_always(project: Path) -> None:
    key = (project / "loop.key").read_text()
    assert "loop.toml exists; overwrite it with --force" in tfgrpo("loop", "init", code=1)
    assert "kept   loop.key" in tfgrpo("loop", "init", "--force")
    assert (project / "loop.key").read_text() == key


def test_config_says_where_each_value_comes_from(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFGRPO_LOOP_SERVICE_PORT", "4400")
    (project / "loop.toml").write_text("[assembler]\nidle_s = 5\n")
    rows = {row.split()[0]: row.split(maxsplit=2)[1:] for row in tfgrpo("loop", "config").splitlines()}
    assert rows["service.port"] == ["4400", "environment TFGRPO_LOOP_SERVICE_PORT"]
    assert rows["assembler.idle_s"] == ["5", "loop.toml"]
    assert rows["view.path"] == ["loop-view.db", "default"]
    (project / "loop.toml").write_text("[warehouse]\nurl = 'http://ada:hush-hush@host:8123/events'\n")
    said = tfgrpo("loop", "config")
    assert "warehouse.url" in said
    assert "hush-hush" not in said


def test_the_reports_are_readable(served: Path, golden: Callable[[str, str], None]) -> None:
    shown = {
        "loop-status.txt": tfgrpo("loop", "status"),
        "loop-report.txt": tfgrpo("loop", "report"),
        "loop-show.txt": tfgrpo("loop", "show", derived_id("a0")[:8]),
    }
    for name, text in shown.items():
        golden(name, text)
        assert max(map(len, text.splitlines())) <= 80
    assert len(tfgrpo("loop", "show", derived_id("a0"), "--full")) > len(shown["loop-show.txt"])


def test_the_page_is_written_beside_the_text(served: Path) -> None:
    told = tfgrpo("loop", "report", "--html", "loop.html")
    assert told == tfgrpo("loop", "report") + "page   loop.html\n"
    page = (served / "loop.html").read_text(encoding="utf-8")
    assert f"<h1>{served.name}</h1>" in page
    assert "60 trajectories, 51 with a reward" in page
    assert "it is a folder; name a file with --html" in tfgrpo("loop", "report", "--html", ".", code=1)
    assert "not allowed with" in tfgrpo("loop", "report", "--json", "--html", "x.html", code=2)


def test_the_figures_are_the_same_as_json_and_after_the_view_was_deleted(served: Path) -> None:
    assert json.loads(tfgrpo("loop", "show", derived_id("a0"), "--json"))["feedback"][0]["rating"] == 4
    found = json.loads(tfgrpo("loop", "report", "--json"))
    assert found["published"]["RL_TRAJECTORIES"] == found["rewards"] + found["unrewarded"] == 60
    assert found["redacted"] == {"email": 60}
    assert json.loads(tfgrpo("loop", "status", "--json"))["waiting"] == 1
    for path in served.glob("loop-view.db*"):
        path.unlink()
    assert json.loads(tfgrpo("loop", "report", "--json")) == found
    assert json.loads(tfgrpo("loop", "report", "--json", "--last", "10"))["looked_at"] == 10


def test_an_id_must_find_one_trajectory(served: Path) -> None:
    assert "no trajectory on the bus has the id 'zz'" in tfgrpo("loop", "show", "zz", code=1)
    first = {derived_id(f"{'abcdefghij'[n % 10]}{n}")[0] for n in range(60)}
    assert "several trajectories start with" in tfgrpo("loop", "show", min(first), code=1)


def test_reading_makes_no_bus(project: Path) -> None:
    assert "there is no bus loop-bus.db yet; `tfgrpo loop serve` makes it" in tfgrpo("loop", "status", code=1)
    assert not (project / "loop-bus.db").exists()


def test_a_folder_without_a_loop_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for command in ("status", "report"):
        assert "there is no loop.toml here, and no bus; go to" in tfgrpo("loop", command, code=1)
    assert not [*tmp_path.iterdir()]


def test_who_opts_out_is_kept_by_pseudonym_alone(project: Path) -> None:
    tfgrpo("loop", "opt-out", "add", "--user", "bob@example.com")
    assert "user" in tfgrpo("loop", "opt-out", "list")
    assert not bytes_in(project, b"bob@example.com")
    assert "opted in" in tfgrpo("loop", "opt-out", "remove", "--user", "bob@example.com")
    assert "unchanged" in tfgrpo("loop", "opt-out", "remove", "--user", "bob@example.com")
    assert tfgrpo("loop", "opt-out", "list") == "none\n"


def test_files_are_taken_in_once_and_a_mistake_takes_in_nothing(project: Path) -> None:
    recorded = str(RECORDED / "strands.jsonl")
    assert "accepted: 12" in tfgrpo("loop", "import", recorded)
    tfgrpo("loop", "import", recorded)
    assert json.loads(tfgrpo("loop", "status", "--json"))["published"]["RL_SPANS"] == 2
    assert "no-such-file" in tfgrpo("loop", "import", recorded, "no-such-file", code=1)
    for scale in ("stars", "stars=1", "=1..5", "stars=1..", "stars=a..b"):
        assert "must be NAME=LOW..HIGH" in tfgrpo("loop", "import", recorded, "--scale", scale, code=2)


def test_a_scale_may_be_of_a_score_with_any_name(project: Path) -> None:
    recorded = str(RECORDED / "strands.jsonl")
    assert "accepted: 12" in tfgrpo("loop", "import", recorded, "--scale", "a=b=1..5")


def test_who_forgets_somebody_is_on_record_and_a_blank_id_is_nobodys(
    served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forget, "_PAUSE_S", 0.0)
    for flags in (["--user", " "], ["--session", "\t"]):
        assert "an empty id is nobody's" in tfgrpo("loop", "forget", *flags, code=1)
    assert "forgot" in tfgrpo("loop", "forget", "--session", "chat-3", "--actor", "ada")
    assert " ada forget session " in " ".join(tfgrpo("loop", "audit", "list").split())


def test_imported_traces_are_evaluated_without_a_service(project: Path) -> None:
    assert "next: tfgrpo loop report" in tfgrpo("loop", "import", str(RECORDED / "pydantic-ai.jsonl"))
    stored = json.loads(tfgrpo("loop", "report", "--json"))
    assert (stored["published"]["RL_TRAJECTORIES"], stored["rewards"], stored["unrewarded"]) == (2, 1, 1)
    tfgrpo("loop", "import", str(RECORDED / "pydantic-ai.jsonl"))
    assert json.loads(tfgrpo("loop", "report", "--json")) == stored


def test_a_provider_that_is_down_below_a_web_root_is_seen_in_the_report(project: Path) -> None:
    for framework in ("openai-agents-openinference", "openai-agents-logfire"):
        tfgrpo("loop", "import", str(RECORDED / "frameworks" / framework / "web-dead.jsonl"))
        told = tfgrpo("loop", "report")
        assert "failed     1 of 1 runs failed; see one with: tfgrpo loop show" in told
        assert json.loads(tfgrpo("loop", "report", "--json"))["rewards"] == 1
        for path in project.glob("loop-*.db*"):
            path.unlink()


@pytest.mark.parametrize("number", ["0", "-1", "1.5", "x"])
def test_a_number_of_runs_is_from_1_on(number: str) -> None:
    told = tfgrpo("loop", "report", f"--last={number}", code=2)
    assert f"must be a whole number from 1 on, not '{number}'" in told


def test_the_service_has_the_address_and_the_limits_of_the_configuration(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[dict[str, object]] = []

    def run(**given: object) -> None:
        started.append(given)
        for role in given["roles"]:  # type: ignore[attr-defined]
            role.close()
        given["bus"].close()  # type: ignore[attr-defined]

    monkeypatch.setattr("pytest_tfgrpo.cli.loop.serve.run_service", run)
    for size, held in ((3, 128 << 20), (50, 200 << 20)):
        (project / "loop.toml").write_text(
            f"[service]\nport = 4400\ntoken = 'abcdefghijklmnop'\nmax_body_mb = {size}\n"
        )
        assert tfgrpo("loop", "serve") == "stopped    what was accepted is on the bus\n"
        found = started.pop()
        assert found["limits"] == ServiceLimits(body_bytes=size << 20, held_bytes=held)
        assert found["address"] == ListeningAddress(host="127.0.0.1", port=4400, token="abcdefghijklmnop")


@pytest.mark.parametrize("command", ["loop", "live"])
def test_the_next_command_can_be_pasted_into_a_shell(project: Path, command: str) -> None:
    said = tfgrpo(command, "init", "my folder").splitlines()[-1]
    assert "cd 'my folder' && " in said
    assert "cd" not in tfgrpo(command, "init", "--force").splitlines()[-1]

"""Set-up and tear-down of file scenarios: around each rollout, and whose fault it is when they break."""

import json
import os
import signal
import time

import pytest
from support.plugin.worlds import AGENT, STEPS, WORLD, ended, ini, log, one
from support.project import Project
from support.tools import require_tool, run_pytest

import pytest_tfgrpo


@pytest.fixture
def shop(project: Project) -> Project:
    project.write("steps.py", STEPS).agent(AGENT)
    return ini(project, "python:agent2:sell")


def test_a_command_runs_with_files_beside_its_scenario_in_the_workspace(project: Project) -> None:
    project.write("worlds/make.sh", "cp $2 stock.txt; test $1 = fast; test -z $SECRET")
    project.write("worlds/stock.csv", "lamp")
    project.write(
        "worlds/shop.scenario.yaml",
        """
- id: lamp
  split: eval
  prompt: How many lamps?
  setup: {command: sh make.sh fast stock.csv, timeout_s: 20}
  teardown: {command: [grep, -q, lamp, stock.txt]}
  checks: [{kind: file, path: stock.txt, contains: lamp}]
""",
    )
    project.run("--tfgrpo-out=out").assert_outcomes(passed=1)
    assert ended(project)["status"] == "ok"


BREAKING: dict[str, list[tuple[dict[str, object], str, str]]] = {
    "python": [
        ({"setup": {"python": "steps:breaks"}}, "setup", "raised\nTraceback"),
        ({"setup": {"python": "steps:hangs", "timeout_s": 0.1}}, "setup", "took more than 0.1 s"),
        ({"teardown": {"python": "steps:breaks"}}, "teardown", "\nSystemExit: no room"),
    ],
    "command": [
        (
            {"setup": {"command": "sh -c 'echo gone >&2; exit 3'"}},
            "setup",
            "ended with 3; output ends 'gone'",
        ),
        ({"setup": {"command": "sleep 30", "timeout_s": 0.2}}, "setup", "'sleep 30' took more than 0.2 s"),
        ({"setup": {"command": "no-such-program"}}, "setup", "cannot be started: No such file"),
        ({"setup": {"command": "sh -c 'yes 123456789'"}}, "setup", "printed more than 16000000 bytes"),
        ({"teardown": {"command": "false"}}, "teardown", "teardown 'false' ended with 1"),
    ],
}
"""Steps by their kind, with code and message."""


@pytest.mark.parametrize("kind", BREAKING)
def test_a_step_that_breaks_is_an_error_and_no_failure_of_the_agent(shop: Project, kind: str) -> None:
    same = {"split": "eval", "domain": "text", "checks": [{"kind": "exact", "value": "3"}]}
    values = [
        {"id": f"eval{n}", "prompt": f"How many words has {n}?"} | same | fields
        for n, (fields, _, _) in enumerate(BREAKING[kind])
    ]
    shop.write("suite.scenario.json", json.dumps(values))
    assert ini(shop, "python:agent:right", out="out").run().ret == 1
    found = {rollout["scenario_id"]: rollout for rollout in shop.events("rollout")}
    assert len(found) == len(values)
    for n, (_, code, said) in enumerate(BREAKING[kind]):
        rollout = found[f"eval{n}"]
        assert rollout["status"] == "error"
        assert rollout["failure"]["code"] == code
        assert said in rollout["failure"]["message"]
        assert (f"eval{n}" in shop.calls) == (code == "teardown")


def test_a_warning_of_a_tear_down_is_one_line(shop: Project) -> None:
    found = one(shop, setup={"command": "false"}, teardown={"python": "steps:breaks"}).run()
    assert "teardown 'steps:breaks' raised SystemExit: no room" in " ".join(found.stdout.str().split())
    assert "Traceback" not in found.stdout.str()


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_secret_that_the_end_of_an_output_cuts_in_two_is_not_shown(project: Project, stream: str) -> None:
    key = "sk-" + "abcdefghij" * 4
    project.write("up.py", f"import sys\nprint('{key} ' + 'y' * 470, file=sys.{stream})\nsys.exit(1)\n")
    one(ini(project, "python:agent:right", out="out"), setup={"command": "python up.py"}).run()
    message = ended(project)["failure"]["message"]  # type: ignore[index]
    assert "redacted" in message
    assert "abcdefghij" not in message


def test_an_interrupt_tears_down_what_it_left(shop: Project) -> None:
    ini(one(shop, timeout_s=100, **WORLD), "python:agent2:sleep", out="out")
    process = shop.start("--tfgrpo-acceptance=off")
    wait_for(shop, "asked")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=100)
    assert log(shop).count("up") == log(shop).count("down") > 0
    assert shop.manifest()["status"] == "cancelled"


def wait_for(project: Project, word: str) -> None:
    deadline = time.monotonic() + 100
    while word not in log(project) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert word in log(project)


MIXED = """

async def mixed(context):
    return "3" if "plain" in context.task.id else await sleep(context)
"""


@pytest.mark.parametrize(("setup", "word"), [("steps:up", "asked"), ("steps:hangs", "hangs")])
def test_a_resumed_run_tears_down_what_a_killed_one_left_and_repeats_no_rollout(
    shop: Project, setup: str, word: str
) -> None:
    fields = {"setup": {"python": setup}, "teardown": WORLD["teardown"], "timeout_s": 100}
    shop.tasks("a-plain-{split}{n}", "What is {split} {n} and 3?", "plain", train=1)
    shop.tasks(train=1, eval=1, fields=fields).agent(AGENT + MIXED)
    ini(shop, "python:agent2:mixed", out="out", task_id="demo")
    process = shop.start("--tfgrpo-acceptance=off")
    wait_for(shop, word)
    shop.wait_for_rollouts(process, 2)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    left = sorted(line.split()[1] for line in lines_of(shop) if line.startswith(setup[6:]))
    assert "down" not in log(shop)
    assert left
    (shop.root / "steps.log").unlink()
    done = [rollout["rollout_id"] for rollout in shop.events("rollout")]
    # stamps of sources must stay, so the world outside changes
    (shop.root / "quick").touch()
    shop.learn("--tfgrpo-acceptance=off", "--tfgrpo-resume=latest")
    assert shop.manifest()["status"] == "complete"
    down = [line.split()[1] for line in lines_of(shop) if line.startswith("down")]
    # once for the killed one, once for its repeat; others may have been set up without a line in the log yet
    assert [down.count(one) for one in left] == [2] * len(left)
    assert [rollout["rollout_id"] for rollout in shop.events("rollout")].count(done[0]) == 1
    assert len(done) == 2


def lines_of(project: Project) -> list[str]:
    return [line for line in (project.root / "steps.log").read_text().splitlines() if " " in line]


def test_a_run_by_code_has_worlds_too(shop: Project) -> None:
    scenario = pytest_tfgrpo.scenario(
        "sum",
        folder=shop.root,
        prompt="2 + 1?",
        split="eval",
        checks=[{"kind": "file", "path": "made", "pattern": "^$"}],
        setup={"command": ["touch", "made"]},
    )
    assert pytest_tfgrpo.run(shop.root, [scenario], actor="python:agent:right", learning=False).passed


SEES = """
- id: lamp
  split: eval
  prompt: How many lamps?
  setup: {command: [sh, make.sh]}
  checks: [{kind: file, path: stock.txt, contains: lamp}]
"""


@pytest.mark.parametrize("settings", [{"check_sandbox": "bwrap"}, {"sandbox": "bwrap"}])
def test_a_command_runs_in_the_sandbox_of_agents_or_of_checks(
    project: Project, settings: dict[str, str]
) -> None:
    require_tool("bwrap")
    project.write("make.sh", f"if test -e {project.root}/pytest.ini; then exit 9; fi; echo lamp > stock.txt")
    project.write("agent.sh", "#!/bin/sh\necho done").write("lamp.scenario.yaml", SEES)
    (project.root / "agent.sh").chmod(0o755)
    project.ini(actor="command:./agent.sh", out="out", **settings)
    project.run().assert_outcomes(passed=1)
    project.ini(actor="command:./agent.sh", out="out").run().assert_outcomes(failed=1)
    assert "ended with 9" in ended(project)["failure"]["message"]  # type: ignore[index]


def test_workers_set_up_and_tear_down_each_world_once(shop: Project) -> None:
    shop.tasks(eval=4, fields=WORLD)
    run_pytest(shop.root, "-p", "xdist.plugin", "-n", "2")
    assert log(shop).count("up") == log(shop).count("down-sold") == 4

"""Set-up and tear-down of file scenarios: around each rollout, and whose fault it is when they break."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from support.preparing import loaded
from support.project import Project
from support.tools import require_tool, run_pytest

import pytest_tfgrpo
from pytest_tfgrpo.core.errors import ScenarioError

STEPS = """
import os
import time
from pathlib import Path

LOG = Path(__file__).with_name("steps.log")


def note(word, context):
    with LOG.open("a") as file:
        file.write(f"{word} {context.rollout_id}\\n")


def up(context):
    note("up", context)
    (context.workspace / "stock.txt").write_text(context.task.id)


def down(context):
    left = (context.workspace / "sold.txt").is_file()
    note("down-sold" if left else "down", context)


def breaks(context):
    note("breaks", context)
    raise SystemExit("no room for a database")


def hangs(context):
    note("hangs", context)
    while not Path(__file__).with_name("quick").exists():
        time.sleep(0.01)


async def later(context): ...
"""
AGENT = """
import asyncio
from pathlib import Path

import steps

CHECKED = []


def sell(context):
    assert "setup" not in repr(context.task) and "steps:" not in str(context.prompt)
    with steps.LOG.open("a") as file:
        file.write("asked\\n")
    (context.workspace / "sold.txt").write_text((context.workspace / "stock.txt").read_text())
    return "3"


def crash(context):
    raise RuntimeError("the agent fell over")


async def sleep(context):
    with steps.LOG.open("a") as file:
        file.write("asked\\n")
    while not Path(__file__).with_name("quick").exists():
        await asyncio.sleep(0.01)
    return "3"


def sold(context):
    with steps.LOG.open("a") as file:
        file.write("checked\\n")
    return (context.workspace.path / "sold.txt").read_text() == context.task.id
"""
WORLD = {"setup": {"python": "steps:up"}, "teardown": {"python": "steps:down"}}


@pytest.fixture
def shop(project: Project) -> Project:
    project.write("steps.py", STEPS).agent(AGENT)
    return ini(project, "python:agent2:sell")


def ini(project: Project, actor: str, **settings: object) -> Project:
    lines = "".join(f"tfgrpo_{name} = {value}\n" for name, value in settings.items())
    return project.write("pytest.ini", f"[pytest]\npythonpath = .\ntfgrpo_actor = {actor}\n{lines}")


def log(project: Project) -> list[str]:
    path = project.root / "steps.log"
    return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []


def one(project: Project, **fields: object) -> Project:
    return project.tasks(eval=1, fields=fields)


def ended(project: Project) -> dict[str, object]:
    (rollout,) = project.events("rollout")
    return rollout


def test_each_rollout_is_set_up_asked_checked_and_torn_down(shop: Project) -> None:
    checks = [{"kind": "python", "target": "agent2:sold"}]
    shop.tasks(train=2, eval=1, fields={"checks": checks, **WORLD})
    shop.learn("--tfgrpo-acceptance=off", "--tfgrpo-eval-rollouts=1")
    assert shop.manifest()["status"] == "complete"
    made = len(shop.events("rollout"))
    assert [log(shop).count(word) for word in ("up", "asked", "checked", "down-sold")] == [made] * 4
    lines = (shop.root / "steps.log").read_text().splitlines()
    for name in {line.split()[1] for line in lines if line.startswith("up")}:
        assert [line for line in lines if line.endswith(f" {name}")] == [f"up {name}", f"down-sold {name}"]
    assert shop.report()["epochs"][0]["gt_score"]["mean"] == 1.0


def test_a_world_stands_until_its_checks_are_done(shop: Project) -> None:
    one(shop, checks=[{"kind": "python", "target": "agent2:sold"}], **WORLD).run()
    assert log(shop) == ["up", "asked", "checked", "down-sold"]


def test_a_callable_is_found_beside_its_scenario_file_wherever_that_is(project: Project) -> None:
    project.write("worlds/beside.py", "import more\ndef up(context): more.up(context)\n")
    project.write("worlds/more.py", "def up(context): (context.workspace / 'a.txt').write_text('lamp')\n")
    project.write(
        "worlds/lamp.scenario.yaml",
        "{id: lamp, split: eval, prompt: How many lamps?, setup: {python: 'beside:up'},"
        " checks: [{kind: file, path: a.txt, contains: lamp}]}",
    )
    path = list(sys.path)
    project.run().assert_outcomes(passed=1)
    assert sys.path == path
    project.write("more.scenario.yaml", (project.root / "worlds/lamp.scenario.yaml").read_text())
    project.write("beside.py", "def up(context): pass\n")
    result = project.run("worlds", "more.scenario.yaml")
    result.stdout.fnmatch_lines(
        ["more.scenario.yaml:*setup/python: 'beside:up' was found in *worlds/beside.py, not beside the *"]
    )


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


def test_a_callable_that_breaks_is_shown_with_the_line_where_it_broke(shop: Project) -> None:
    found = one(shop, setup={"python": "steps:breaks"}).run()
    found.stdout.fnmatch_lines(["error: setup: setup 'steps:breaks' raised SystemExit: no room*"])
    found.stdout.fnmatch_lines(
        ["traceback, its end:", '*File "*steps.py", line *, in breaks', "*SystemExit: no room*"]
    )
    assert "world_steps.py" not in found.stdout.str()


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


@pytest.mark.parametrize(
    ("actor", "timeout_s", "status"),
    [("python:agent2:crash", 10, "failed"), ("python:agent2:sleep", 0.1, "failed"),
     ("python:agent:provider", 10, "error")],
)  # fmt: skip
def test_a_world_is_torn_down_whatever_became_of_the_agent(
    shop: Project, actor: str, timeout_s: float, status: str
) -> None:
    ini(one(shop, timeout_s=timeout_s, **WORLD), actor, out="out").run()
    assert ended(shop)["status"] == status
    assert log(shop)[-1] == "down"
    assert log(shop).count("up") == log(shop).count("down")


def test_what_was_set_up_in_part_is_torn_down(shop: Project) -> None:
    one(shop, setup={"python": "steps:breaks"}, teardown=WORLD["teardown"]).run()
    assert log(shop) == ["breaks", "down"]


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
    assert sorted(down[: len(left)]) == left
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


@pytest.mark.parametrize(
    ("fields", "pointer", "said"),
    [
        ({"setup": {"python": "steps:gone"}}, "setup/python", "cannot be used"),
        ({"setup": {"python": "steps:later"}}, "setup/python", "is not a plain callable"),
        (
            {"teardown": {"python": "nowhere:gone"}},
            "teardown/python",
            "is its folder on pytest's pythonpath?",
        ),
        ({"setup": {"python": "steps"}}, "setup/python", "does not match"),
        ({"setup": {"command": "'"}}, "setup/command", "cannot be split"),
        ({"setup": {"command": ["a\0b"]}}, "setup/command", "names no program"),
        ({"setup": {"command": [""]}}, "setup/command", "names no program"),
        ({"setup": {"python": "steps:up", "command": "true"}}, "setup", ""),
        ({"setup": {"timeout_s": 3}}, "setup", ""),
        ({"setup": {"command": "true", "timeout_s": 0}}, "setup/timeout_s", ""),
        ({"setup": {"command": "true", "env": {}}}, "setup", "env"),
        ({"setup": "true"}, "setup", ""),
    ],
)
def test_a_malformed_step_is_an_error_of_its_file(
    shop: Project, fields: dict[str, object], pointer: str, said: str
) -> None:
    with pytest.raises(ScenarioError) as broken:
        loaded(one(shop, **fields))
    text = str(broken.value)
    assert f"suite.scenario.json:2: #/0/{pointer}" in text or f"#/0/{pointer}" in text
    assert said in text
    assert log(shop) == []


def test_pytest_says_which_step_is_malformed(shop: Project) -> None:
    result = one(shop, setup={"python": "steps:gone"}).run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    text = "".join(result.outlines)
    assert "#/0/setup/python" in text
    assert "cannot be used" in text
    assert "Traceback" not in text
    assert log(shop) == []


def test_a_marked_test_function_has_fixtures_instead(project: Project) -> None:
    project.checker("""
@pytest.mark.tfgrpo(split="eval", setup={"command": "true"}, **MARK)
def test_sweep(rollout): pass
""")
    result = project.run()
    assert result.ret != 0
    assert "leave setup out" in "".join((*result.outlines, *result.errlines))


def test_a_replay_needs_no_world_as_files_of_both_are_recorded(shop: Project) -> None:
    checks = [{"kind": "file", "path": "sold.txt", "contains": "eval0"}]
    one(shop, checks=checks, **WORLD).run("--tfgrpo-record=answers.jsonl").assert_outcomes(passed=1)
    before = log(shop)
    shop.run("--tfgrpo-actor=replay:answers.jsonl").assert_outcomes(passed=1)
    assert log(shop) == before == ["up", "asked", "down-sold"]


def test_workers_set_up_and_tear_down_each_world_once(shop: Project) -> None:
    shop.tasks(eval=4, fields=WORLD)
    run_pytest(shop.root, "-p", "xdist.plugin", "-n", "2")
    assert log(shop).count("up") == log(shop).count("down-sold") == 4


def test_an_attempt_that_is_made_again_has_a_fresh_world(shop: Project) -> None:
    shop.agent(
        AGENT
        + """

from pytest_tfgrpo import ProviderError

TRIED = set()


def flaky(context):
    assert not (context.workspace / "sold.txt").exists()
    sell(context)
    if context.task.id not in TRIED and context.task.id != "eval0":
        TRIED.add(context.task.id)
        raise ProviderError("503 from the provider")
    return "3"
"""
    ).tasks(eval=2, fields=WORLD)
    ini(shop, "python:agent2:flaky", concurrency=1).run().assert_outcomes(passed=2)
    assert log(shop).count("up") == log(shop).count("down-sold") == log(shop).count("asked") > 2


def test_what_sets_up_counts_as_part_of_the_task_and_nothing_else_does(tmp_path: Path) -> None:
    (tmp_path / "make.sh").write_text("true")

    def stamp_of(**fields: object) -> str:
        checks = [{"kind": "exact", "value": "3"}]
        one = pytest_tfgrpo.scenario("a", folder=tmp_path, prompt="2 + 1?", checks=checks, **fields)
        return one.stamp

    plain = stamp_of()
    assert plain == "5c03bedf88d79849f67b5a365a68221c50bbd0f43f55cd41ef8f71e62201e392"
    command = stamp_of(setup={"command": "sh make.sh"})
    assert stamp_of(setup={"command": ["sh", "make.sh"], "timeout_s": 9}) == command
    (tmp_path / "make.sh").write_text("false")
    stamps = [plain, command, stamp_of(setup={"command": "sh make.sh"})]
    stamps += [stamp_of(**{name: {"python": "os:getcwd"}}) for name in ("setup", "teardown")]
    assert len(set(stamps)) == len(stamps)


def test_a_link_out_of_the_folder_of_the_suite_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("key")
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "make.sh").symlink_to(tmp_path / "secret")
    with pytest.raises(ScenarioError, match="is a link that leaves its folder"):
        pytest_tfgrpo.scenario(
            "a",
            folder=tmp_path / "suite",
            prompt="2 + 1?",
            checks=[{"kind": "exact", "value": "3"}],
            setup={"command": "sh make.sh"},
        )


def test_an_imported_table_brings_no_steps(project: Project) -> None:
    steps = '"setup": {"command": "touch made"}, "teardown": {"python": "a:b"}'
    row = f'{{"prompt": "2 + 1?", "answer": "3", {steps}}}'
    project.write("table.jsonl", row)
    assert project.cli("import", "jsonl", "table.jsonl", "--into", "suite") == 0
    (made,) = (project.root / "suite").glob("*.jsonl")
    assert "2 + 1?" in made.read_text()
    assert not {"setup", "teardown"} & json.loads(made.read_text().splitlines()[0]).keys()


def test_a_conversation_has_one_world_and_each_of_several_agents_its_own(shop: Project) -> None:
    talk = {"turns": [{"user": "How many?"}, {"user": "Are you sure?"}], **WORLD}
    scenario = {"id": "talk", "split": "eval", "checks": [{"kind": "contains", "value": "3"}], **talk}
    shop.write("talk.scenario.json", json.dumps(scenario))
    ini(shop, "python:agent2:sell").run().assert_outcomes(passed=1)
    assert log(shop) == ["up", "asked", "asked", "down-sold"]
    ini(shop, "python:agent2:sell, python:agent:right").run().assert_outcomes(passed=2)
    assert log(shop).count("up") == 3
    assert (log(shop).count("down-sold"), log(shop).count("down")) == (2, 1)

"""Set-up and tear-down of file scenarios: around each rollout, and whose fault it is when they break."""

import json
import sys
from pathlib import Path

import pytest
from support.plugin.worlds import AGENT, STEPS, WORLD, ended, ini, log, one
from support.preparing import loaded
from support.project import Project

import pytest_tfgrpo
from pytest_tfgrpo.core.errors import ScenarioError


@pytest.fixture
def shop(project: Project) -> Project:
    project.write("steps.py", STEPS).agent(AGENT)
    return ini(project, "python:agent2:sell")


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


def test_a_callable_that_breaks_is_shown_with_the_line_where_it_broke(shop: Project) -> None:
    found = one(shop, setup={"python": "steps:breaks"}).run()
    found.stdout.fnmatch_lines(["error: setup: setup 'steps:breaks' raised SystemExit: no room*"])
    found.stdout.fnmatch_lines(
        ["traceback, its end:", '*File "*steps.py", line *, in breaks', "*SystemExit: no room*"]
    )
    assert "world_steps.py" not in found.stdout.str()


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

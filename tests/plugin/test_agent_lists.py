"""Several agents side by side: a run each, equal seeds, one comparison."""

import json
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from support.preparing import refusal
from support.project import Project, item_names

from pytest_tfgrpo import run
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.learning.library.library import empty, load_library, save_library
from pytest_tfgrpo.runs.journal.journal_contents import load_run

BOTH = "half = python:agent:half, learner = python:agent:learner"
DOWN = "down = python:agent:provider, right = python:agent:right"


def seeds(folder: Path, epoch: int) -> dict[tuple[str, int], int]:
    found = next(result for result in load_run(folder).phases if result.phase.epoch == epoch)
    return {(r.scenario_id, r.index): r.seed for group in found.groups for r in group.rollouts}


def comparison(project: Project) -> dict[str, Any]:
    (file,) = (project.root / "out").glob("*/comparisons/*.json")
    value: dict[str, Any] = json.loads(file.read_text())
    assert not violations("agents", value)
    return value


@pytest.fixture
def two(project: Project) -> Project:
    return project.ini(actor=BOTH, task_id="demo").scenarios(train=2, sweep=2)


def test_each_agent_has_an_item_for_each_scenario_and_epoch(two: Project) -> None:
    result = two.learn("-v")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["tfgrpo: agents half, learner, group size 2, *"])
    names = [name.partition("::")[2] for name in item_names(result)]
    assert names[:4] == [f"suite-train{n}[{agent}-epoch1]" for agent in ("half", "learner") for n in (0, 1)]
    assert names[-6:] == [
        *(f"suite-eval{n}[{agent}-epoch3-eval]" for agent in ("half", "learner") for n in (0, 1)),
        "gate[half]",
        "gate[learner]",
    ]
    assert len(names) == 2 * 9


def test_plain_pytest_runs_each_scenario_once_for_each_agent(project: Project) -> None:
    project.ini(actor="right = python:agent:right, wrong = python:agent:wrong").scenarios(sweep=2)
    result = project.run("-v")
    result.assert_outcomes(passed=2, failed=2, deselected=4)
    assert sorted(project.calls) == ["suite-eval0"] * 2 + ["suite-eval1"] * 2
    assert [name.partition("::")[2] for name in item_names(result)] == [
        "suite-eval0[right]",
        "suite-eval1[right]",
        "suite-eval0[wrong]",
        "suite-eval1[wrong]",
    ]
    result.stdout.fnmatch_lines(["2 agents", "not sure whether wrong is better or worse than right: *"])
    assert not (project.root / "out").exists()


def test_agents_learn_apart_with_equal_seeds(two: Project) -> None:
    two.scenarios(train=6, sweep=12)
    assert two.learn().ret == 0
    half, learner = (next((two.root / "out" / f"demo.{name}/runs").iterdir()) for name in ("half", "learner"))
    for epoch in (1, 3):
        assert seeds(half, epoch) == seeds(learner, epoch) != {}
    runs = [load_run(folder) for folder in (half, learner)]
    assert [run.settings["actor"] for run in runs] == ["python:agent:half", "python:agent:learner"]
    assert not runs[0].library.experiences
    assert {lesson.actor for lesson in runs[1].library.experiences} == {"python:agent:learner"}
    assert json.loads((two.root / "out/demo.learner/library.json").read_text())["experiences"]


def test_the_comparison_pairs_the_agents_and_is_a_page_too(project: Project) -> None:
    project.ini(actor=f"{BOTH}, right = python:agent:right", task_id="demo").scenarios(train=4, sweep=12)
    result = project.learn()
    result.stdout.fnmatch_lines(
        [
            "agent  half",
            "gate  *",
            "3 agents",
            "learner is better than half: +0.*",
            "*(Holm)",
            "page   out/demo/*",
        ]
    )
    value = comparison(project)
    assert [agent["name"] for agent in value["agents"]] == ["half", "learner", "right"]
    assert [(pair["before"], pair["after"], pair["claim"]) for pair in value["pairs"]] == [
        ("half", "learner", "better"),
        ("half", "right", "better"),
        ("learner", "right", None),
    ]
    for pair in value["pairs"][:2]:
        assert pair["difference"]["n"] == 12
        assert pair["difference"]["p_adjusted"] > pair["difference"]["p"]
    (page,) = (project.root / "out/demo/comparisons").glob("*.html")
    assert "learner is better than half" in page.read_text()


def test_choosing_items_of_one_agent_runs_that_agent_alone(two: Project) -> None:
    result = two.learn("-k", "learner")
    assert result.ret == 0
    assert [path.parent.parent.name for path in two.runs()] == ["demo.learner"]
    result.stdout.no_fnmatch_line("*2 agents*")


def test_a_node_id_names_one_agent(two: Project) -> None:
    two.run("suite.scenario.json::suite-eval1[half]")
    assert two.calls == ["suite-eval1"]


def test_marked_functions_judge_each_agent(project: Project) -> None:
    project.ini(actor="right = python:agent:right, wrong = python:agent:wrong").checker(
        "@pytest.mark.tfgrpo(split='eval', **MARK)\n"
        "@pytest.mark.parametrize('n', ['tfgrpo-right-x', 'b'])\n"
        "def test_x(rollout, n): assert rollout.answer == '3'\n"
    )
    result = project.run("-v")
    result.assert_outcomes(passed=2, failed=2)
    assert item_names(result)[1] == "test_agent.py::test_x[tfgrpo-right-x-tfgrpo-right-eval-r0]"
    assert project.learn().ret == 0


def test_a_test_with_an_agent_of_its_own_compares_nothing(project: Project) -> None:
    project.ini(actor=BOTH).checker(
        "@pytest.fixture\ndef tfgrpo_agent(): return lambda context: '3'\n"
        "@pytest.mark.tfgrpo(split='eval', **MARK)\n"
        "def test_x(rollout, tfgrpo_agent): pass\n"
    )
    result = project.run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*test_x has an agent of its own, the fixture 'tfgrpo_agent'*"])


@pytest.mark.parametrize(
    ("actor", "message"),
    [
        (
            "offline, offline",
            "actor must list each agent once ('offline' is there twice)*(ini key tfgrpo_actor)",
        ),
        ("right = python:agent:right, openai:模型", "*write NAME = openai:模型*"),
        ("python:agent:right, python:agent:nobody", "*nobody*"),
        ("python:agent:right\n  offlin", "actor: unknown actor 'offlin'*'offline'*"),
    ],
)
def test_a_bad_list_is_an_error_before_anything_is_asked(project: Project, actor: str, message: str) -> None:
    assert fnmatch(refusal(project.ini(actor=actor).scenarios(), "--tfgrpo"), message)
    assert not (project.root / "out").exists()


def test_a_bad_agent_of_a_list_is_a_usage_error(project: Project) -> None:
    result = project.ini(actor="python:agent:right\n  offlin").scenarios().learn()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: actor: unknown actor 'offlin'*'offline'*"])
    assert project.calls == []
    assert not (project.root / "out").exists()


def test_one_agent_that_is_down_stops_no_other(project: Project) -> None:
    project.ini(actor=DOWN, task_id="demo").scenarios(train=2, sweep=12)
    result = project.learn()
    assert result.ret == 1
    down, right = (load_run(folder) for folder in project.runs())
    assert right.status == "complete"
    assert not [r for result in down.phases for g in result.groups for r in g.rollouts if r.status != "error"]
    result.stdout.fnmatch_lines(["agent  right", "gate  passed*", "not sure whether right is better*"])
    result.stdout.fnmatch_lines(["FAILED *gate?down?*"])
    assert comparison(project)["pairs"][0]["difference"]["n"] == 0


def test_a_command_makes_the_comparison_again_from_the_journals(
    two: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    two.learn()
    before = comparison(two)
    (page,) = (two.root / "out").glob("demo/comparisons/*.html")
    told = page.read_bytes()
    for written in page.parent.iterdir():
        written.unlink()
    assert two.cli("report", "--agents") == 0
    output = capsys.readouterr().out
    assert f"page   {page.relative_to(two.root)}" in output
    assert comparison(two) == before
    assert page.read_bytes() == told
    assert two.cli("report", "--agents", before["id"][:8]) == 0


@pytest.mark.parametrize(
    ("actor", "arguments", "told"),
    [
        (BOTH, ["--agents"], "'latest' is no run that several of the agents half, learner share"),
        (
            BOTH,
            ["--agents", "--html", "x.html"],
            "--agents goes with none of --compare, --what-if and --html",
        ),
        ("offline", ["--agents"], "--agents compares the agents of a list"),
    ],
)
def test_a_comparison_that_cannot_be_made_again_says_why(
    project: Project, capsys: pytest.CaptureFixture[str], actor: str, arguments: list[str], told: str
) -> None:
    project.ini(actor=actor, task_id="demo")
    assert project.cli("report", *arguments) == 1
    assert told in capsys.readouterr().err


def test_agents_share_one_budget(project: Project) -> None:
    source = (
        "FRAMES = [{'kind': 'model', 'name': 'm', 'tokens': 10}]\n"
        "def first(context): return {'answer': '3', 'frames': FRAMES}\n"
        "def second(context): return first(context)\n"
    )
    project.agent(source).ini(
        actor="python:agent2:first, python:agent2:second", budget_tokens=100, concurrency=2, eval_rollouts=2
    )
    project.scenarios(train=2, sweep=10)
    project.learn()
    runs = [load_run(folder) for folder in project.runs()]
    used = [
        sum(r.tokens or 0 for p in run.phases for r in (*p.loose, *(r for g in p.groups for r in g.rollouts)))
        for run in runs
    ]
    assert 100 <= sum(used) <= 120  # what is in flight may exceed it
    assert min(used) >= 40
    assert all("budget_tokens" in run.reason for run in runs)


def test_what_an_agent_spent_that_has_ended_counts_when_another_goes_on(project: Project) -> None:
    source = (
        "from pathlib import Path\nfrom pytest_tfgrpo import ProviderError\n"
        "FRAMES = [{'kind': 'model', 'name': 'm', 'tokens': 10}]\n"
        "def first(context): return {'answer': '3', 'frames': FRAMES}\n"
        "def second(context):\n"
        "    if not Path(__file__).with_name('up').exists(): raise ProviderError('503')\n"
        "    return first(context)\n"
    )
    project.agent(source).ini(
        actor="python:agent2:first, python:agent2:second", budget_tokens=300, concurrency=2, task_id="demo"
    )
    project.scenarios(train=0, sweep=10).learn()
    assert [load_run(folder).status for folder in project.runs()] == ["complete", "incomplete"]
    project.write("up", "").learn("--tfgrpo-resume")
    runs = [load_run(folder) for folder in project.runs()]
    used = [
        sum(r.tokens or 0 for p in run.phases for r in (*p.loose, *(r for g in p.groups for r in g.rollouts)))
        for run in runs
    ]
    assert used == [200, 100]
    assert runs[1].reason == "budget_tokens of 300 is used up (300 spent)"


def test_a_dry_run_says_the_part_of_each_agent(two: Project) -> None:
    result = two.learn("--tfgrpo-dry-run")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "agent  half",
            "dry run: *",
            "agent  learner",
            "dry run: *",
            "2 agents together: 24 to 32 rollouts; *",
        ]
    )
    assert two.calls == []


def test_files_of_each_agent_are_named_after_it(two: Project) -> None:
    two.ini(actor=BOTH, task_id="demo", record="rec/{agent}.json")
    assert two.learn().ret == 0
    assert sorted(path.name for path in (two.root / "rec").iterdir()) == ["half.json", "learner.json"]
    replayed = two.ini(actor="replay:rec/half.json, replay:rec/learner.json", task_id="again").learn()
    assert replayed.ret == 0


def test_one_recording_for_two_agents_is_refused(two: Project) -> None:
    result = two.learn("--tfgrpo-record=rec.json")
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        ["ERROR: record = 'rec.json' (flag --tfgrpo-record) is one file for 2 agents; *"]
    )


def test_lessons_of_one_agent_are_tried_with_another(two: Project) -> None:
    two.scenarios(train=6, sweep=12)
    assert two.learn("-k", "learner").ret == 0
    two.agent(
        "from agent import _with_tool\n"
        "def pupil(context): return _with_tool('3' if '<experiences' in context.prompt.system else '4')\n"
    )
    two.ini(
        actor="python:agent2:pupil",
        task_id="b",
        library="out/demo.learner/library.json",
        baseline="no-lessons",
        out="out",
    )
    result = two.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*: TfgrpoWarning: *learned with another actor:*", "gain  +1.000 over *"])
    tried = load_run(two.runs()[0])
    assert tried.library.experiences
    assert tried.reference is not None
    assert not tried.reference.library.experiences


def test_a_stored_baseline_may_be_called_no_lessons(project: Project) -> None:
    project.scenarios(train=0, sweep=12)
    assert project.run("--tfgrpo-out=out", "--tfgrpo-eval-rollouts=3").ret == 0
    assert project.cli("baseline", "save", "no-lessons") == 0
    project.run("--tfgrpo-baseline=no-lessons", "--tfgrpo-out=out")
    assert load_run(project.runs()[-1]).reference is None


def test_commands_find_the_runs_of_an_agent(two: Project, capsys: pytest.CaptureFixture[str]) -> None:
    two.ini(actor=BOTH, task_id="demo", library="{agent}.json")
    for name in ("half", "learner"):
        save_library(two.root / f"{name}.json", empty())
    two.scenarios(train=6, sweep=12).learn()
    capsys.readouterr()
    assert two.cli("runs") == 0
    assert "add --task-id demo.half or demo.learner" in capsys.readouterr().out
    assert two.cli("library", "promote", "latest") != 0
    assert "add --task-id demo.half or demo.learner" in capsys.readouterr().err
    assert two.cli("library", "show", "committed") != 0
    assert "say whose with --task-id, for example --task-id demo.half" in capsys.readouterr().err
    assert two.cli("library", "promote", "latest", "--task", "demo.learner") == 0
    assert load_library(two.root / "learner.json").experiences
    assert not load_library(two.root / "half.json").experiences


def test_the_command_line_reads_the_runs_that_a_program_made_of_a_list(
    two: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    results = run(two.root, actor=BOTH.split(", "), task_id="demo", group_size=2, acceptance="off")
    assert list(results) == ["half", "learner"]
    assert [one.run.identities["actor"]["name"] for one in results.values()] == [
        "python:agent:half",
        "python:agent:learner",
    ]
    assert two.cli("report", "--agents") == 0
    said = capsys.readouterr().out
    assert results.lines[0] in said
    assert f"comparisons/{results.page.stem}.html" in said if results.page else False


def test_seeds_are_repeated_of_one_agent(two: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert two.cli("replicate", "3", "--dry-run") == 1
    assert "tfgrpo_actor lists 2; name one" in capsys.readouterr().err


def test_a_scenario_names_the_agents_that_try_it(project: Project) -> None:
    project.ini(actor="right = python:agent:right, wrong = python:agent:wrong", task_id="demo")
    project.scenarios("all", train=0, sweep=2).scenarios("some", train=0, sweep=1, agents=["right"])
    result = project.run("-v", "--tfgrpo-out=out", "--tfgrpo-gate-min-mean=0.5")
    assert sorted(project.calls) == ["all-eval0"] * 2 + ["all-eval1"] * 2 + ["some-eval0"]
    result.stdout.fnmatch_lines(["*gate[[]right] PASSED*", "*gate[[]wrong] FAILED*"])
    result.stdout.no_fnmatch_line("*part of the suite*")
    result.stdout.fnmatch_lines(["*wrong is better or worse than right: only 2 of 3 scenarios are*"])
    rows = {row["scenario"]: row["means"] for row in comparison(project)["scenarios"]}
    assert rows == {"all-eval0": [1.0, 0.0], "all-eval1": [1.0, 0.0], "some-eval0": [1.0, None]}


def test_agents_that_share_no_scenario_run_and_are_not_compared(project: Project) -> None:
    project.ini(actor=BOTH, task_id="demo")
    project.scenarios("a", train=2, sweep=2, agents=["half"], domain="a")
    project.scenarios("b", train=2, sweep=2, agents=["learner"], domain="b")
    result = project.learn()
    assert result.ret == 0
    for name, domain in (("half", "a"), ("learner", "b")):
        run = load_run(next((project.root / "out" / f"demo.{name}/runs").iterdir()))
        assert {s.id for s in run.scenarios} == {
            f"{domain}-{split}{n}" for split in ("train", "eval") for n in (0, 1)
        }


def test_an_agent_that_the_list_lacks_is_an_error_of_its_scenario(project: Project) -> None:
    project.ini(actor=BOTH).scenarios(train=1, sweep=1, agents=["learnr"])
    result = project.learn()
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*suite.scenario.json:*: #/agents: unknown agent 'learnr'*'learner'*"])
    assert project.calls == []


def test_a_single_actor_tries_all_scenarios(project: Project) -> None:
    project.ini(actor="python:agent:right").scenarios(train=0, sweep=1, agents=["small"])
    project.run().assert_outcomes(passed=1)


MARKED = """
@pytest.mark.tfgrpo(**MARK, split="eval", agents=["{}"])
def test_one(rollout):
    assert rollout.answer == "3"
"""


def test_the_mark_of_a_test_function_names_its_agents(project: Project) -> None:
    project.ini(actor="right = python:agent:right, wrong = python:agent:wrong")
    result = project.checker(MARKED.format("right")).run("-v")
    result.assert_outcomes(passed=1)
    assert [name.partition("::")[2] for name in item_names(result)] == ["test_one[tfgrpo-right-eval-r0]"]


def test_a_mark_with_an_agent_that_the_list_lacks_is_an_error(project: Project) -> None:
    project.ini(actor="right = python:agent:right, wrong = python:agent:wrong")
    result = project.checker(MARKED.format("left")).run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*test_one: agents must be a list of names of right, wrong, not ?'left'?*"])
    result = project.checker(MARKED.format("left").replace('["left"]', "3")).run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*test_one: agents must be a list of names of right, wrong, not 3*"])


RIGHT_AND_WRONG = "right = python:agent:right, wrong = python:agent:wrong"


def test_a_domain_has_agents_of_its_own(project: Project) -> None:
    project.ini(
        actor=RIGHT_AND_WRONG, domain_agents="\n  text = right\n  hard = right, wrong", task_id="demo"
    )
    project.scenarios("a", train=2, sweep=1).scenarios("b", train=2, sweep=1, domain="hard")
    project.scenarios("c", train=0, sweep=1, agents=["wrong"]).scenarios("d", train=0, sweep=1, domain="x")
    project.checker(MARKED.replace(', agents=["{}"]', ""))
    result = project.run("-v")
    assert sorted(name.partition("::")[2] for name in item_names(result)) == [
        "a-eval0[right]",
        "b-eval0[right]",
        "b-eval0[wrong]",
        "c-eval0[wrong]",
        "d-eval0[right]",
        "d-eval0[wrong]",
        "test_one[tfgrpo-right-eval-r0]",
    ]
    project.learn()
    runs = [load_run(path) for path in project.runs()]
    assert [len([s for s in run.scenarios if s.id[:2] in ("a-", "b-")]) for run in runs] == [6, 3]


@pytest.mark.parametrize(
    ("domains", "message"),
    [
        ("text = rihgt", "*unknown agent 'rihgt'; did you mean 'right'?"),
        ("text = other", "*(ini key tfgrpo_domain_agents): unknown agent 'other'; the list has right, wrong"),
        ("text, right", "domain_agents must begin with a domain, such as *"),
    ],
)
def test_an_agent_that_is_not_there_is_an_error(project: Project, domains: str, message: str) -> None:
    project.ini(actor=RIGHT_AND_WRONG, domain_agents=domains).scenarios()
    assert fnmatch(refusal(project, "--tfgrpo"), message)


def test_an_agent_of_a_domain_that_is_not_there_is_a_usage_error(project: Project) -> None:
    project.ini(actor=RIGHT_AND_WRONG, domain_agents="text = rihgt").scenarios()
    result = project.learn()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *unknown agent 'rihgt'; did you mean 'right'?"])
    assert project.calls == []


def test_who_tries_a_scenario_is_no_part_of_its_task() -> None:
    from pytest_tfgrpo import scenario

    fields: dict[str, Any] = {"prompt": "x", "checks": [{"kind": "exact", "value": "3"}]}
    one, other = scenario("a", **fields), scenario("a", **fields, agents=["small"])
    assert one.stamp == other.stamp
    assert other.agents == ("small",)

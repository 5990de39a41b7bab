"""What a dry run says a run will cost, against what it then costs."""

import re
import shutil
from collections.abc import Iterator

import pytest
from support.fake_model import Body, FakeModel, Reply, text, usage
from support.project import Project

PRICES = """
endpoints:
  lab: {base_url: "%s"}
prices:
  m-1: {input: 2.0, cached_input: 0.5, output: 8.0}
"""


def answer(request: Body, attempt: int) -> Reply:
    """Answer right or wrong by the seed; what a teacher or judge is asked is answered with no JSON."""
    words = sum(len(message["content"]) for message in request["messages"])
    return text("3" if request.get("seed", 0) % 2 else "4", usage=usage(words // 4, 30 + words % 7))


@pytest.fixture
def server() -> Iterator[FakeModel]:
    with FakeModel(answer) as server:
        yield server


@pytest.fixture
def lab(project: Project, server: FakeModel) -> Project:
    project.write("models.yaml", PRICES % server.base_url)
    project.ini(
        actor="openai:m-1@lab", models="models.yaml", group_size=4, max_tokens=200, baseline_sweep="early"
    )
    return project.scenarios(train=4, sweep=3)


def ends(result: pytest.RunResult, row: str = "total") -> tuple[float, float]:
    """Return both ends of the cost of a row of the estimate."""
    line = next(line for line in result.outlines if line.startswith(row) and "$" in line)
    found = re.findall(r"\$([0-9.]+)", line)
    return float(found[0]), float(found[-1])


def test_without_earlier_runs_the_range_is_guessed_from_prompts_and_holds_the_real_cost(
    lab: Project, server: FakeModel
) -> None:
    plan = lab.learn("--tfgrpo-dry-run")
    assert plan.ret == 0
    assert server.requests == []
    assert not (lab.root / "out").exists()
    plan.stdout.fnmatch_lines(["rollouts: estimated from 7 rendered prompts, *"])
    low, high = ends(plan)
    assert lab.learn().ret == 0
    cost = lab.report()["cost"]
    assert cost["unknown"] == 0
    assert low <= cost["usd"] <= high
    assert cost["epochs"][1]["rollouts"]["calls"] == 16


def test_with_earlier_runs_the_range_is_narrower_and_holds_the_real_cost(
    lab: Project, server: FakeModel
) -> None:
    guessed = ends(lab.learn("--tfgrpo-dry-run"))
    assert lab.learn().ret == 0
    before = len(server.requests)
    plan = lab.learn("--tfgrpo-dry-run")
    assert len(server.requests) == before
    plan.stdout.fnmatch_lines(["rollouts: mean and spread of 56 in 1 earlier run"])
    recorded = ends(plan)
    assert recorded[1] - recorded[0] < guessed[1] - guessed[0]
    assert lab.learn("--tfgrpo-seed", "7").ret == 0
    assert recorded[0] <= lab.report()["cost"]["usd"] <= recorded[1]


def test_without_earlier_runs_a_recording_says_what_rollouts_use(lab: Project, server: FakeModel) -> None:
    record = ("--tfgrpo-record", "recording.jsonl")
    assert lab.learn(*record).ret == 0
    cost = lab.report()["cost"]["usd"]
    shutil.rmtree(lab.root / "out")
    plan = lab.learn("--tfgrpo-dry-run", *record)
    plan.stdout.fnmatch_lines(["rollouts: mean and spread of 56 in the recording"])
    low, high = ends(plan)
    assert low <= cost <= high < 1.5 * cost
    (lab.root / "models.yaml").write_text(PRICES.replace("8.0", "80.0") % server.base_url)
    dearer = ends(lab.learn("--tfgrpo-dry-run", *record))
    assert dearer[0] > high, "old tokens are told at the prices of today"


def test_a_recording_that_is_not_there_yet_or_is_of_another_actor_says_nothing(lab: Project) -> None:
    record = ("--tfgrpo-record", "recording.jsonl")
    lab.learn("--tfgrpo-dry-run", *record).stdout.fnmatch_lines(["rollouts: estimated from *"])
    assert lab.learn("--tfgrpo-actor", "openai:m-2@lab", *record).ret == 0
    lab.learn("--tfgrpo-dry-run", *record).stdout.fnmatch_lines(["rollouts: estimated from *"])


def test_calls_for_learning_and_judging_are_part_of_the_estimate_and_of_the_cost(lab: Project) -> None:
    lab.scenarios(train=3, sweep=2, rubric=[{"text": "Is it right?"}])
    options = ("--tfgrpo-optimizer", "llm", "--tfgrpo-judge", "openai:m-1@lab", "--tfgrpo-judge-votes", "2")
    plan = lab.learn("--tfgrpo-dry-run", *options)
    plan.stdout.fnmatch_lines(
        ["baseline judge *", "epoch1 learning *", "judge: estimated, *", "learning: estimated, *"]
    )
    low, high = ends(plan)
    lab.learn(*options)
    report = lab.report()
    assert low <= report["cost"]["usd"] <= high
    assert report["cost"]["epochs"][1]["learning"]["calls"] > 0
    assert report["cost"]["epochs"][0]["judge"]["calls"] >= 2 * 2 * 4
    assert report["library"]["failures"]
    again = lab.learn("--tfgrpo-dry-run", *options)
    again.stdout.fnmatch_lines(["learning: mean and spread of 2 epochs in 1 earlier run"])
    low, high = ends(again)
    assert low <= report["cost"]["usd"] <= high


def test_a_budget_below_the_upper_end_is_warned_about(lab: Project) -> None:
    plan = lab.learn("--tfgrpo-dry-run", "--tfgrpo-budget-usd", "0.05")
    plan.stdout.fnmatch_lines(["warning: budget_usd of $0.05 may not be enough: up to $*"])
    assert plan.ret == 0


def test_a_model_without_a_price_has_calls_and_tokens_and_no_cost(lab: Project) -> None:
    plan = lab.learn("--tfgrpo-dry-run", "--tfgrpo-actor", "openai:m-2@lab")
    plan.stdout.fnmatch_lines(
        ["total * 56 * to * ?", "warning: the price of openai:m-2@lab is unknown; add it to *"]
    )
    assert lab.learn("--tfgrpo-actor", "openai:m-2@lab").ret == 0
    cost = lab.report()["cost"]
    assert (cost["usd"], cost["unknown"]) == (None, 56)
    assert cost["tokens"] > 0


def test_a_budget_without_a_price_is_refused_before_anything_is_asked(
    lab: Project, server: FakeModel
) -> None:
    result = lab.learn("--tfgrpo-actor", "openai:m-2@lab", "--tfgrpo-budget-usd", "1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*budget_usd is 1, but the price of 'm-2@lab' is unknown*"])
    result = lab.learn("--tfgrpo-budget-usd", "0.0001")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*one call of 'openai:m-1@lab' may cost*"])
    assert server.requests == []


def test_an_actor_that_is_free_costs_nothing(project: Project) -> None:
    project.scenarios().ini(actor="offline")
    for _ in range(2):
        plan = project.learn("--tfgrpo-dry-run")
        plan.stdout.fnmatch_lines(["cost    nothing"])
        plan.stdout.no_fnmatch_line("*estimate*")
        project.learn()


def test_a_journal_that_is_damaged_is_passed_over(lab: Project) -> None:
    assert lab.learn().ret == 0
    journal = next((lab.root / "out").glob("*/runs/*/journal.jsonl"))
    journal.write_bytes(b"\x00garbage\n" + journal.read_bytes())
    lab.learn("--tfgrpo-dry-run").stdout.fnmatch_lines(["rollouts: estimated from *"])

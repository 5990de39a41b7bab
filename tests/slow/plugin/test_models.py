"""Runs against a model server: whole ones, faulty ones, killed ones, and ones short of money."""

import json
import signal
from collections import Counter
from functools import partial

import pytest
from support import fake_model
from support.fake_model import Body, Serve
from support.plugin.models import (
    ECHO,
    KEY,
    LOUD,
    PRICED,
    TOOLS,
    assert_no_key,
    echoed,
    settings,
    used,
)
from support.project import Project


@pytest.fixture
def serve(project: Project, monkeypatch: pytest.MonkeyPatch, serve: Serve) -> Serve:
    """Start a model server that the project's actor asks; retries are off."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    project.write("models.yaml", "endpoints: {default: {retries: 0}}\n")
    settings(project)
    return partial(serve, keys=[KEY])


LOOP = fake_model.calls(("lookup", {"key": "KEY"}), content=ECHO)
LASTING = {
    "answer with the key": (echoed(fake_model.text(ECHO)), None, None),
    "400": (echoed(fake_model.refused(400, ECHO)), "errors", "rejected"),
    "filtered": (fake_model.filtered(), "errors", "content_filter"),
    "5 MB": (fake_model.huge(5_000_000), "failed", "oversize"),
    "2 MB": (fake_model.huge(2_000_000), "failed", "oversize"),
    "truncated": (echoed(fake_model.text(ECHO, finish="length")), "failed", "truncated"),
    "refusal": (echoed(fake_model.text(None, refusal=ECHO)), "failed", "refusal"),
    "no answer": (fake_model.text(""), "failed", "no_answer"),
    "endless loop": (echoed(LOOP), "failed", "tool_loop"),
    "unknown tool for ever": (fake_model.UNKNOWN_TOOL, "failed", "tool_loop"),
    "broken arguments for ever": (fake_model.BROKEN_ARGUMENTS, "failed", "tool_loop"),
}
"""Replies that stay what they are whenever they are asked for, with what comes of them."""
TRAINED = ("400", "truncated")
"""Those that a train scenario meets too, in a group of two."""
STATUS = {"errors": "error", "failed": "failed", None: "ok"}


def test_each_lasting_fault_has_its_outcome_and_none_shows_the_key(project: Project, serve: Serve) -> None:
    server = serve(lambda request, _: LASTING[request["messages"][1]["content"].partition(":")[2]][0])
    project.write("words.py", TOOLS)
    settings(project, eval_rollouts=1, tools="words", max_steps=2, contamination="warn")
    scenarios = [
        {"id": f"{split}{n}", "split": split, "prompt": f"{split}:{name}", "timeout_s": 20}
        | {"domain": "text", "checks": [{"kind": "exact", "value": "3"}]}
        for n, name in enumerate(LASTING)
        for split in (("train", "eval") if name in TRAINED else ("eval",))
    ]
    project.write("suite.scenario.json", json.dumps(scenarios))
    result = project.pages().learn(*LOUD)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert server.requests
    found = project.events("rollout")
    tried = {name: 3 if name in TRAINED else 1 for name in LASTING}
    assert len(found) == sum(tried.values())
    for n, (name, (_, kind, code)) in enumerate(LASTING.items()):
        own = [r for r in found if r["scenario_id"] in (f"train{n}", f"eval{n}")]
        outcomes = [(r["status"], r["failure"] and r["failure"]["code"]) for r in own]
        assert outcomes == [(STATUS[kind], code)] * tried[name]
    report = project.report()
    faults = Counter[tuple[str, str | None]]()
    for name, (_, kind, code) in LASTING.items():
        if kind is not None:
            faults[kind, code] += tried[name]
    assert report["faults"] == {
        kind: {code: n for (which, code), n in faults.items() if which == kind}
        for kind in ("errors", "failed")
    }
    errors = [kind for _, kind, _ in LASTING.values()].count("errors")
    assert [epoch["errors"] for epoch in report["epochs"]] == [2, errors]
    assert [epoch["gt_score"]["n"] for epoch in report["epochs"]] == [1, len(LASTING) - errors]
    assert project.manifest()["status"] == "complete"
    assert_no_key(project, result.stdout.str() + result.stderr.str())


def test_a_narrow_server_makes_no_rollout_wait_beyond_its_time_limit(project: Project, serve: Serve) -> None:
    server = serve(lambda request, _: "3", delay_s=0.1)
    project.write("models.yaml", "endpoints: {default: {concurrency: 2}}\n")
    assert project.scenarios(train=0, sweep=30, timeout_s=2.0).learn().ret == 0
    assert server.most_in_flight == 2
    assert project.report()["faults"] == {"errors": {}, "failed": {}}


def test_rollouts_that_wait_behind_a_judge_at_a_narrow_server_are_no_late_ones(
    project: Project, serve: Serve
) -> None:
    def answer(body: Body, _: int) -> str:
        if body["model"] == "m":
            return "3"
        keys = body["response_format"]["json_schema"]["schema"]["properties"]
        return json.dumps({key: {"why": "it is so", "met": True} for key in keys})

    server = serve(answer, delay_s=0.02)
    project.write("models.yaml", "endpoints: {default: {concurrency: 1}}\n")
    settings(project, judge="openai:judge", judge_votes=75, eval_rollouts=1)
    result = project.scenarios(train=0, sweep=3, timeout_s=1.2, rubric=["It is short."]).learn()
    assert len(server.requests) == 228, "the votes on one answer take longer than the time limit"
    assert project.report()["faults"] == {"errors": {}, "failed": {}}
    assert result.ret == 0


@pytest.mark.parametrize(("budget", "of"), [({"budget_tokens": 6000}, 0), ({"budget_usd": 0.4}, 1)])
def test_a_budget_is_never_overrun_and_ends_the_run_in_good_order(
    project: Project, serve: Serve, budget: dict[str, float], of: int
) -> None:
    server = serve(lambda request, _: "3", delay_s=0.005)
    project.write("models.yaml", PRICED)
    settings(project, max_tokens=50, **budget)
    result = project.scenarios(train=30, sweep=30).learn()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    spent = sum(use[of] for use in used(server))
    (limit,) = budget.values()
    assert 0.5 * limit < spent <= limit
    assert project.manifest()["status"] != "complete"
    result.stdout.fnmatch_lines([f"*{next(iter(budget))} of * is used up*"])


def test_a_killed_run_repeats_no_finished_rollout(project: Project, serve: Serve) -> None:
    server = serve(lambda request, _: "3" if request["seed"] % 2 else "4", delay_s=0.01)
    settings(project, epochs=3, group_size=3, concurrency=2)
    project.scenarios(train=6, sweep=4)
    planned = 6 * 3 * 2 + 4 * 3
    resume: list[str] = []
    finished: set[str] = set()
    kills = 0
    for target in (5, 17, 40):
        process = project.start(*resume)
        project.wait_for_rollouts(process, target)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.communicate()
        finished |= {rollout["rollout_id"] for rollout in project.events("rollout")}
        resume = ["--tfgrpo-resume"]
    assert kills == 3
    assert len(project.runs()) == 1
    before = len(server.requests)
    output, _ = project.start(*resume).communicate(timeout=100)
    assert "passed" in output, output
    assert len(server.requests) - before == planned - len(finished)
    counts = Counter(rollout["rollout_id"] for rollout in project.events("rollout"))
    assert len(counts) == planned
    assert set(counts.values()) == {1}
    assert project.manifest()["status"] == "complete"

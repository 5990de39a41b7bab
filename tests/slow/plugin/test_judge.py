"""Learning and measuring without ground truth: by a judge behind a real protocol, or by majority."""

from support.fake_model import Serve
from support.plugin.judge import RUBRIC, cut_after, fair, suite
from support.project import Project


def test_a_resumed_run_repeats_no_call_of_the_judge(project: Project, serve: Serve) -> None:
    server = serve(fair)
    suite(project.ini(actor="python:agent:half", judge="openai:x"), truth="judge", rubric=RUBRIC)
    project.learn()
    before, asked = project.report(), len(server.requests)
    (folder,) = project.runs()
    paid = cut_after(folder / "journal.jsonl", '"key":"e', asked // 2)
    assert project.learn("--tfgrpo-resume").ret == 0
    assert len(server.requests) == asked + (asked - paid)
    after = project.report()
    assert after["judge"] == before["judge"]
    assert after["scenarios"] == before["scenarios"]


def test_a_budget_that_ends_between_votes_loses_none_that_was_paid_for(
    project: Project, serve: Serve
) -> None:
    server = serve(fair)
    project.ini(
        actor="python:agent:half", judge="openai:x", max_tokens=100, concurrency=2, baseline_sweep="early"
    )
    suite(project, truth="judge", rubric=RUBRIC)
    assert project.learn("--tfgrpo-budget-tokens", "9000").ret == 1
    first = len(server.requests)
    assert 0 < first < 16 * 3
    report = project.report()
    assert report["status"] == "incomplete"
    assert report["faults"]["errors"] == {}
    assert project.learn("--tfgrpo-resume").ret == 0
    assert len(server.requests) == 16 * 3
    assert len(project.calls) == 16
    assert project.report()["judge"]["opinions"] == 16

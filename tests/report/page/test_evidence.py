"""Where a lesson came from, and which scenarios it reaches: what links of a page rest on."""

from dataclasses import replace

from support.builders import make_experience
from support.sweeps import make_run

from pytest_tfgrpo.core.lessons import Library, Operation, Refusal, Revision
from pytest_tfgrpo.core.records import Group, Run
from pytest_tfgrpo.report.page.evidence import LessonEvidence, evidence
from pytest_tfgrpo.report.page.grid import grid
from pytest_tfgrpo.report.page.html import html
from pytest_tfgrpo.report.page.layout import layout
from pytest_tfgrpo.report.page.payload.payload import index
from pytest_tfgrpo.report.page.trajectories import Packed
from pytest_tfgrpo.report.value import build

OLD = make_experience(1, run_id="run0", group_id="run0.e1.t0")
FIRST = make_experience(2, group_id="run1.e1.t0")
SECOND = make_experience(3, group_id="run1.e1.t1", parents=(FIRST.id, OLD.id))
LEARNED = Library(experiences=(SECOND,), hash="d" * 64)
REFUSED = make_experience(4, group_id="run1.e1.t2")


def learned() -> Run:
    """Return a run that learned a lesson, which two of three prompts of its final sweep carry."""
    run = make_run(
        {"a": [0, 0], "b": [0, 1], "c": [1, 1]},
        {"a": [1, 1], "b": [0, 1], "c": [0, 0]},
        {"t0": [1, 0], "t1": [0, 1], "t2": [1, 0]},
    )
    revision = Revision(
        epoch=1,
        library=LEARNED,
        applied=(
            Operation(kind="add", experience=FIRST),
            Operation(
                kind="merge",
                experience=SECOND,
                targets=(FIRST.id, OLD.id),
                groups=("run1.e1.t1", "run1.e1.t2", "run1.e1.gone"),
            ),
        ),
        refused=(
            Refusal(
                operation=Operation(kind="add", experience=REFUSED), code="leak", reason="it has an answer"
            ),
        ),
    )
    baseline, train, final = run.phases

    def carrying(group: Group) -> Group:
        if group.scenario_id == "c":
            return group
        return replace(group, rollouts=tuple(replace(r, experiences=(SECOND.id,)) for r in group.rollouts))

    return replace(
        run,
        library_start=Library(experiences=(OLD,), hash="b" * 64),
        library=LEARNED,
        phases=(
            baseline,
            replace(train, revision=revision),
            replace(final, groups=tuple(map(carrying, final.groups))),
        ),
    )


def found() -> dict[str, LessonEvidence]:
    run = learned()
    return evidence(grid(build(run, None), run), run)


def places(found: LessonEvidence) -> list[tuple[str, str]]:
    run = learned()
    cells = grid(build(run, None), run)
    return [(cells.rows[row].id, cells.columns[column].label) for row, column in found.groups]


def test_a_lesson_comes_from_its_own_groups_then_from_those_of_its_parents() -> None:
    assert places(found()[SECOND.id]) == [("t1", "epoch1"), ("t2", "epoch1"), ("t0", "epoch1")]


def test_without_a_list_of_groups_a_lesson_comes_from_the_one_that_it_names() -> None:
    run = learned()
    train = run.phases[1]
    assert train.revision is not None
    only = Library(experiences=(FIRST,), hash="d" * 64)
    train = replace(train, revision=replace(train.revision, library=only))
    run = replace(run, library=only, phases=(run.phases[0], train, run.phases[2]))
    assert places(evidence(grid(build(run, None), run), run)[FIRST.id]) == [("t0", "epoch1")]


def test_a_lesson_of_an_earlier_run_names_that_run() -> None:
    assert (found()[OLD.id].earlier, found()[OLD.id].groups) == ("run0", ())
    assert found()[SECOND.id].earlier == ""


def test_a_lesson_reaches_the_scenarios_whose_prompts_of_the_final_sweep_carry_it() -> None:
    run = learned()
    rows = grid(build(run, None), run).rows
    reached = found()[SECOND.id]
    assert [rows[row].id for row in reached.rows] == ["a", "b"]
    assert (reached.before, reached.after, reached.change) == (0.25, 0.75, 0.5)
    assert found()[OLD.id].rows == ()
    assert found()[OLD.id].change is None


def test_without_a_baseline_sweep_a_lesson_has_no_mean_before_or_after() -> None:
    run = learned()
    run = replace(run, phases=run.phases[1:])
    alone = evidence(grid(build(run, None), run), run)[SECOND.id]
    assert (len(alone.rows), alone.before, alone.after) == (2, None, None)


def test_the_index_has_the_rows_of_each_cluster_and_of_each_lesson() -> None:
    run = learned()
    report = build(run, None)
    cells = grid(report, run)
    found = index(layout(report, run), Packed())
    clusters = {
        c["key"]: c["scenarios"] for view in report["failures"]["views"].values() for c in view["clusters"]
    }
    assert {key: [cells.rows[n].id for n in rows] for key, rows in found["clusters"].items()} == clusters
    assert [cells.rows[n].id for n in found["lessons"][SECOND.id][4]] == ["a", "b"]
    assert index(layout(report), Packed())["lessons"] == {}


def test_the_page_links_a_lesson_to_its_groups_and_scenarios_without_scripts() -> None:
    run = learned()
    page = html(build(run, None), run)
    row = page.partition(f'<tr id="lesson/{SECOND.id}">')[2].partition("</tr>")[0]
    for link in ("#scenario/t1/epoch1", "#scenario/t0/epoch1", f"#scenarios?lesson={SECOND.id}"):
        assert f'href="{link}"' in row
    assert ">+0.500<" in row


def test_every_lesson_of_the_run_has_one_place_that_links_lead_to() -> None:
    run = learned()
    page = html(build(run, None), run)
    for lesson in (OLD, FIRST, SECOND, REFUSED):
        assert page.count(f'id="lesson/{lesson.id}"') == 1


def test_the_text_of_a_lesson_loses_its_secrets_in_the_data_of_the_page() -> None:
    run, secret = learned(), "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    told = replace(SECOND, summary32=f"Log in with {secret} first.")
    run = replace(run, library=replace(LEARNED, experiences=(told,)))
    value = index(layout(build(run, None), run), Packed())
    assert told.id in value["lessons"]
    assert secret not in str(value["lessons"])

"""What the terminal says of the decisions on the dev split."""

from dataclasses import replace
from typing import Any

import pytest
from support.builders import make_experience, make_scenario
from support.sweeps import SETTINGS, make_result, make_run

from pytest_tfgrpo.core.lessons import (
    Acceptance,
    Experience,
    LessonTrial,
    Library,
    Operation,
    Revision,
    Reward,
    Support,
    Trial,
)
from pytest_tfgrpo.core.records import Reference, Run
from pytest_tfgrpo.report.acceptance import acceptance_lines, acceptance_report

REMOVAL = {"kind": "remove", "targets": ["l7", "l8"], "reason": "", "lesson": None}


def lesson(fate: str, value: float = 0.031) -> dict[str, Any]:
    return {
        "id": "l1",
        "domain": "text",
        "polarity": "do",
        "text": "Count the words.",
        "fate": fate,
        "value": value,
        "sd": 0.02,
        "helps": 0.94,
        "included": 40,
        "left_out": 38,
    }


def epoch(*fates: str, gain: float | None = 0.052, note: str = "") -> dict[str, Any]:
    row = {"epoch": 1, "verdict": "in_part", "kept": 1, "rejected": [], "gain": gain, "note": note}
    return row | {"lessons": [lesson(fate) for fate in fates], "unseen_gain": None}


def told(row: dict[str, Any], *, every: bool = False) -> str:
    found = acceptance_lines({"rule": "safe", "epochs": [row]}, 80, every=every)  # type: ignore[typeddict-item]
    assert max(map(len, found)) <= 80
    return " ".join(" ".join(found).split())


@pytest.mark.parametrize(
    ("fates", "said"),
    [
        (("accepted", "accepted", "kept"), "takes in 2 lessons"),
        (("accepted", "refused"), "takes in 1 lesson, leaves out 1 lesson"),
        (("returned", "removed", "replaced"), "brings back 1 lesson, removes 1 lesson"),
        (("kept",), "changes no lesson"),
    ],
)
def test_an_epoch_is_told_by_what_became_of_its_lessons(fates: tuple[str, ...], said: str) -> None:
    measured = "lessons change the dev mean by +0.052, measured on scenarios that did not select them"
    assert told(epoch(*fates)) == f"dev split epoch1 {said}; {measured}"


def test_families_that_training_does_not_see_are_told_apart() -> None:
    row = epoch("accepted") | {"unseen": 7, "unseen_gain": -0.01, "unseen_sd": 0.04}
    end = "; -0.010 (standard error 0.040) on the 7 of families that training does not use"
    assert told(row).endswith(end)


def test_what_was_not_measured_is_said_so() -> None:
    row = epoch("refused", gain=None, note="not measured: too many rollouts are errors")
    assert told(row) == "dev split epoch1 leaves out 1 lesson: not measured: too many rollouts are errors"


def test_each_lesson_is_listed_with_an_effect_that_is_said_to_be_shrunken() -> None:
    text = told(epoch("accepted"), every=True)
    assert "expected effect on the mean score, drawn towards the other lessons" in text
    assert "accepted: +0.031, 94%; 40 rollouts with it, 38 without: do text: Count the words." in text


def test_of_many_epochs_the_newest_are_shown_and_all_are_counted() -> None:
    rows = [epoch("accepted") | {"epoch": n, "kept": n, "rejected": [REMOVAL] * (n % 2)} for n in range(1, 6)]
    rows.insert(0, epoch() | {"epoch": 9, "verdict": "not_tried"})
    value: Any = {"rule": "safe", "epochs": rows}
    few = acceptance_lines(value, 200, every=False)
    assert few[0] == "dev split  5 epochs: 15 changes kept, 3 rejected; -v shows each"
    assert [text.split()[2] for text in few[1:]] == ["epoch4", "epoch5"]
    every = [text.split()[2] for text in acceptance_lines(value, 200, every=True) if text.startswith("dev")]
    assert every == [f"epoch{n}" for n in range(1, 6)]
    value["epochs"] = rows[:4]
    assert [text.split()[2] for text in acceptance_lines(value, 200, every=False)] == [
        "epoch1",
        "epoch2",
        "epoch3",
    ]
    assert acceptance_lines(None, 80, every=True) == []


def test_what_was_not_removed_is_named_with_every_detail() -> None:
    addition: Any = REMOVAL | {"lesson": {"id": "l9"}}
    row = epoch("accepted") | {"rejected": [REMOVAL, addition]}
    assert told(row, every=True).endswith("not removed: l7, l8")
    assert "not removed" not in told(row)
    assert told(row, every=True).count("not removed") == 1


def test_a_lesson_that_hardly_any_rollout_tried_is_kept_by_default() -> None:
    row = epoch("accepted", "accepted", "kept", "refused")
    row["lessons"][0] |= {"included": 3, "left_out": 1, "helps": 0.64}
    assert "; keeps 1 lesson by default: 4 dev rollouts;" in told(row)
    assert "accepted by default: " in told(row, every=True)
    row["lessons"][2] |= {"included": 1, "left_out": 0, "helps": 0.7}
    assert "; keeps 2 lessons by default: 1 to 4 dev rollouts each;" in told(row)
    for shown in ({"helps": 0.81}, {"included": 9}, {"fate": "removed"}):
        single = epoch("accepted")
        single["lessons"][0] |= {"included": 3, "left_out": 1, "helps": 0.64} | shown
        assert "by default" not in told(single, every=True)


REWARD = Reward(gt_score=0.7, relative_rank=0.8)


def known(name: str, **changes: Any) -> Experience:
    fields: dict[str, Any] = {"id": name, "summary32": f"The whole text of {name}.", "reward": REWARD}
    return make_experience(**fields | changes)


def tried(name: str, **changes: Any) -> LessonTrial:
    fields: dict[str, Any] = {"id": name, "key": name, "fate": "kept", "value": 0.1, "sd": 0.2, "helps": 0.9}
    return LessonTrial(**fields | {"included": 3, "left_out": 4} | changes)


def decided(*, applied: int = 0, **fields: Any) -> Revision:
    base: dict[str, Any] = {"rule": "strict", "margin": 0.03, "alpha": 0.05, "scenarios": 1}
    operation = Operation(kind="add", experience=known("added"))
    return Revision(
        epoch=1,
        library=Library(experiences=(known("revised"),)),
        applied=(operation,) * applied,
        acceptance=Acceptance(**base | fields),
    )


def run_of(*revisions: Revision, dev: dict[str, Any] | None = None, **changes: Any) -> Run:
    scenarios = tuple(
        make_scenario(s, split=s, stamp=str(n) * 64) for n, s in enumerate(("train", "dev", "eval"))
    )
    run = make_run(train={"train": [1, 0]}, scenarios=scenarios, **changes)
    swept = make_result(dev or {}, mode="dev", scenarios=scenarios).groups
    (phase,) = run.phases
    return replace(run, phases=tuple(replace(phase, revision=revision, dev=swept) for revision in revisions))


def block(run: Run) -> Any:
    found = acceptance_report(run)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("fields", "verdict"),
    [
        ({"lessons": (tried("revised"),), "applied": 1}, "accepted"),
        ({"lessons": (tried("revised"),)}, "accepted"),
        ({"lessons": (tried("revised"),), "rejected": (Operation(kind="remove"),), "applied": 1}, "in_part"),
        ({"lessons": (tried("revised"),), "rejected": (Operation(kind="remove"),)}, "rejected"),
        ({"trials": (Trial(n=1, operations=(), before="a", after="b", scenarios=1, changed=1),)}, "accepted"),
        ({}, "not_tried"),
        ({"rejected": (Operation(kind="remove"),)}, "not_tried"),
    ],
)
def test_an_epoch_has_a_verdict_where_something_was_tried(fields: Any, verdict: str) -> None:
    found = block(run_of(decided(**fields)))
    (row,) = found["epochs"]
    assert found["alpha"] == 0.05
    assert (row["verdict"], row["kept"]) == (verdict, fields.get("applied", 0))


def test_lessons_of_every_library_and_proposal_are_known_by_their_text() -> None:
    proposals = (
        Operation(kind="add", experience=known("rejected")),
        Operation(kind="remove", targets=("x",)),
    )
    tested = Operation(kind="add", experience=known("tested"))
    trial = Trial(n=1, operations=(tested,), before="a", after="b", scenarios=1, changed=1)
    names = ("started", "old", "revised", "rejected", "tested", "ended")
    run = run_of(
        decided(lessons=tuple(map(tried, (*names, "gone"))), rejected=proposals, trials=(trial,)),
        library_start=Library(experiences=(known("started"),)),
        library=Library(experiences=(known("ended"),)),
        reference=Reference(
            name="x", kind="library", stamp="1" * 64, library=Library(experiences=(known("old"),)), packs=()
        ),
    )
    (row,) = block(run)["epochs"]
    assert [(lesson["id"], lesson["text"]) for lesson in row["lessons"]] == [
        (name, f"The whole text of {name}.") for name in names
    ]


def test_a_decision_is_reported_with_all_its_figures() -> None:
    figures = {
        "gain": 0.1,
        "gain_sd": 0.2,
        "unseen": 3,
        "unseen_gain": 0.4,
        "unseen_sd": 0.5,
        "hit_rate": 0.6,
    }
    rejected = (
        Operation(kind="add", experience=known("new", support=Support(groups=2, rollouts=9)), reason="why"),
        Operation(
            kind="merge",
            experience=known("seen", reward=Reward(total_reward=0.4, relative_rank=0.5)),
            targets=("a", "b"),
        ),
        Operation(kind="remove", targets=("c", "d")),
    )
    first = decided(lessons=(tried("revised"),), rejected=rejected, note="few", **figures)
    later = decided(alpha=0.01)
    run = run_of(Revision(epoch=0, library=Library()), first, later, dev={"dev": [1, None, -1]})
    value = block(run)
    assert (value["rule"], value["margin"], value["alpha"], value["scenarios"]) == ("safe", 0.02, 0.05, 1)
    bare, row, _ = value["epochs"]
    assert {key: row[key] for key in figures} == figures
    assert (row["note"], row["rollouts"], row["errors"]) == ("few", 3, 1)
    assert (bare["verdict"], bare["note"], bare["unseen"], bare["gain"]) == ("not_tried", "", 0, None)
    (lesson,) = row["lessons"]
    assert lesson == {
        "id": "revised",
        "domain": "text",
        "polarity": "do",
        "text": "The whole text of revised.",
        "fate": "kept",
        "value": 0.1,
        "sd": 0.2,
        "helps": 0.9,
        "included": 3,
        "left_out": 4,
    }
    new, seen, gone = row["rejected"]
    assert (new["kind"], new["reason"], new["targets"]) == ("add", "why", [])
    assert new["lesson"] == {
        "id": "new",
        "domain": "text",
        "polarity": "do",
        "text": "The whole text of new.",
        "gt_score": 0.7,
        "groups": 2,
    }
    assert (seen["targets"], seen["lesson"]["total_reward"]) == (["a", "b"], 0.4)
    assert "gt_score" not in seen["lesson"]
    assert gone == {"kind": "remove", "targets": ["c", "d"], "reason": "", "lesson": None}


def test_a_run_without_a_rule_is_one_that_keeps_all_and_a_plain_run_decides_nothing() -> None:
    run = run_of(Revision(epoch=1, library=Library()), settings=SETTINGS | {"acceptance": None})
    assert (block(run)["rule"], block(run)["alpha"]) == ("off", None)
    assert acceptance_report(make_run(None, {"a": [1]})) is None


def test_lessons_with_as_little_evidence_each_are_told_with_one_number() -> None:
    row = epoch("accepted", "returned")
    for one in row["lessons"]:
        one |= {"included": 3, "left_out": 1, "helps": 0.64}
    assert "; keeps 2 lessons by default: 4 dev rollouts each;" in told(row)
    row["lessons"][0] |= {"included": 1, "left_out": 0}
    row["lessons"][1] |= {"helps": 0.8}
    assert "; keeps 1 lesson by default: 1 dev rollout;" in told(row)

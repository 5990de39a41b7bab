"""What the terminal says of the decisions on the dev split."""

from typing import Any

import pytest

from pytest_tfgrpo.report.acceptance import acceptance_lines

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

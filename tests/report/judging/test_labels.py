"""Human labels: which answers are drawn, the form that people fill in, and the gain that they correct."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.report.labels import filled, forty, judged, labels_of, save
from support.sweeps import make_run

from pytest_tfgrpo.core.errors import JournalError, SettingError
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.report import trust
from pytest_tfgrpo.report.judging.judge import label_lines
from pytest_tfgrpo.report.judging.label_file import load_labels, read_form, save_labels, write_form
from pytest_tfgrpo.report.judging.labels import Sample, draw, labels_report, what_if
from pytest_tfgrpo.report.value import build


def as_the_judge(sample: Sample, strict_after: float = 0.0) -> dict[str, float]:
    """Return the labels of a person who agrees with the judge, but for the final sweep by so much less."""
    return {
        one.item: max(0.0, one.score - by)
        for task in sample.tasks
        for arm, by in zip(task.arms, (0.0, strict_after), strict=True)
        for one in arm
    }


# -- the sample


def test_both_sweeps_give_as_many_answers_of_each_task_drawn() -> None:
    sample = draw(forty(), tasks=12, answers=2)
    assert [len(task.arms[0]) for task in sample.tasks] == [2] * 12
    assert [len(task.arms[1]) for task in sample.tasks] == [2] * 12
    assert len(list(sample.items)) == 48
    assert sample.judged == 40


def test_a_sample_is_the_same_again_and_the_beginning_of_a_larger_one() -> None:
    run = forty()
    small, large = draw(run, tasks=10), draw(run, tasks=30)
    assert draw(run, tasks=10) == small
    assert large.tasks[:10] == small.tasks
    assert draw(run, tasks=10, seed=1).tasks != small.tasks


def test_families_take_turns() -> None:
    sample = draw(forty(), tasks=40)
    family = [sample.families_K[task.place] for task in sample.tasks]
    for n in (1, 2, 3, 4):
        assert set(Counter(family[: 10 * n]).values()) == {n}


def test_the_form_tells_neither_sweep_nor_score(tmp_path: Path) -> None:
    run = forty()
    sample = draw(run, tasks=40)
    write_form(tmp_path / "form.csv", sample, {})
    rows = list(csv.DictReader(io.StringIO((tmp_path / "form.csv").read_text("utf-8-sig"))))
    assert list(rows[0]) == ["label", "task", "steps", "answer", "criteria", "id"]
    assert all(re.fullmatch("a-[0-9a-f]{16}", row["id"]) for row in rows)
    assert rows[0]["criteria"] == "> 1. It greets.\n> 2. (counts 3) It is short."
    first = [task.items[0].text["answer"].startswith("baseline") for task in sample.tasks]
    assert 8 < sum(first) < 32
    for row in rows:
        assert row["label"] == ""
        assert "opinion" not in str(row)


def test_an_answer_that_both_sweeps_gave_is_asked_about_once() -> None:
    run = judged({"a": [0.0], "b": [1.0]}, {"a": [1.0], "b": [1.0]}, ["same", "one", "same", "other"])
    sample = draw(run, tasks=2)
    same = next(task for task in sample.tasks if len(task.items) == 1)
    assert [arm[0].score for arm in same.arms] == [0.0, 1.0]
    assert same.arms[0][0].item == same.arms[1][0].item
    found = labels_report(run, labels_of(sample, run, {item.id: 1.0 for item in sample.items}))
    assert (found["asked"], found["gain"]) == (3, 0.0)


def test_rollouts_that_the_judge_did_not_score_need_no_label() -> None:
    run = judged({"a": [-1, -1], "b": [1.0, -1]}, {"a": [1.0, 1.0], "b": [1.0, None]})
    sample = draw(run, tasks=2, answers=2)
    weights = {sample.families_K[task.place]: (task.weights, len(task.items)) for task in sample.tasks}
    assert weights == {"scenario a": ((0.0, 1.0), 2), "scenario b": ((0.5, 1.0), 2)}
    found = labels_report(run, labels_of(sample, run, {item.id: 0.0 for item in sample.items}))
    assert found["judge_gain"] == 0.75
    assert found["gain"] == pytest.approx(0.75 + (-1.0 - (1.0 - 0.5)) / 2)


def test_without_a_judge_or_a_baseline_sweep_there_is_nothing_to_label() -> None:
    plain = make_run({"a": [1, 0]}, final={"a": [1, 1]})
    for run in (plain, make_run(final={"a": [1]})):
        with pytest.raises(JournalError, match="nothing to label"):
            draw(run, tasks=5)


# -- the gain


def test_labels_that_agree_with_the_judge_leave_its_gain() -> None:
    run = forty()
    sample = draw(run, tasks=20)
    found = labels_report(run, labels_of(sample, run, as_the_judge(sample)))
    assert (found["gain"], found["correction"]) == (found["judge_gain"], 0.0)
    assert [arm["agreement"] for arm in found["arms"]] == [1.0, 1.0]
    assert "misleads" not in "\n".join(label_lines(found, 80))


def test_a_judge_whom_the_lessons_please_is_found_out() -> None:
    run = forty()
    sample = draw(run, tasks=40)
    found = labels_report(run, labels_of(sample, run, as_the_judge(sample, strict_after=0.6)))
    assert found["gain"] < found["judge_gain"] - 0.3
    baseline, final = found["arms"]
    assert (baseline["agreement"], baseline["bias"]) == (1.0, 0.0)
    assert final["agreement"] < 0.6
    assert final["bias"] > 0.3
    told = " ".join(label_lines(found, 80))
    assert "the judge is more generous in the final than in the baseline sweep" in told
    assert "its own gain misleads" in told


def test_few_labels_and_labels_passed_over_are_told() -> None:
    run = forty()
    sample = draw(run, tasks=40)
    every = as_the_judge(sample)

    def told(tasks: Iterable[int], **changes: Any) -> str:
        ids = {item.id for n in tasks for item in sample.tasks[n].items}
        block = labels_report(
            run, labels_of(sample, run, {k: v for k, v in every.items() if k in ids}, **changes)
        )
        return " ".join(" ".join(label_lines(block, 80)).split())

    assert "5 labelled tasks are too few for an interval" in told(range(5))
    assert "12 labelled tasks are few" in told(range(12))
    assert "passed over" not in told(range(30))
    assert "10 tasks passed over before the last labelled one" in told(range(10, 40))
    assert "gain by people: unknown; 0 labels of 80" in told([])
    assert "after a look at the gain (4, 80 labels), so a claim is at 0.025" in told(range(40), reads=(4, 80))
    assert "after a look" not in told(range(40), reads=(80,))


def test_a_claim_goes_by_the_labels_and_needs_them_without_gaps() -> None:
    run = forty()
    sample = draw(run, tasks=40)
    every = as_the_judge(sample)
    gap = {item.id for item in sample.tasks[3].items}

    def found(values: dict[str, float], **changes: Any) -> tuple[str | None, float]:
        block = labels_report(run, labels_of(sample, run, values, **changes))
        told = trust.claim(build(run, None) | {"labels": block})
        assert told.startswith("by people's labels, ")
        assert ("does better" in told) == (block["claim"] == "better")
        return block["claim"], block["level"]

    assert found(every) == ("better", 0.05)
    assert found(every, reads=(10, 20, 80))[1] == pytest.approx(0.05 / 3)
    assert found({id_: value for id_, value in every.items() if id_ not in gap}) == (None, 0.05)
    assert found(dict.fromkeys(every, 1.0)) == (None, 0.05)
    assert build(run, None)["gain"]["claim"]["side"] == "better"


def test_a_suite_with_checks_too_is_corrected_by_its_judged_part() -> None:
    run = forty()
    half = {s.id for s in run.scenarios[::2]}
    mixed = replace(
        run, scenarios=tuple(replace(s, truth="checks") if s.id in half else s for s in run.scenarios)
    )
    sample = draw(mixed, tasks=40)
    found = labels_report(mixed, labels_of(sample, mixed, {item.id: 0.0 for item in sample.items}))
    assert (found["judged"], found["used"]) == (20, 20)
    picked = [task.place for task in sample.tasks]
    kept = [gain for place, gain in enumerate(sample.gains_K) if place not in picked]
    answers = [task.arms[1][0].score - task.arms[0][0].score for task in sample.tasks]
    assert found["gain"] == pytest.approx(
        (sum(kept) + sum(sample.gains_K[p] for p in picked) - sum(answers)) / 40
    )


# -- the form


HOSTILE = (
    "=cmd|' /C calc'!A0",
    "a;=cmd()",
    'a;"=cmd()"',
    "a; '+1",
    "line\n=1+1",
    "line\r=1+1",
    "\t@SUM(1)",
    "\x1b]0;owned\x07\x1b[31mred",
    "-2+3",
    "＝1+1",
    "\u202egnp.exe",
    '";=HYPERLINK("http://x")\n"',
    "0042",
    "1/2",
    "\x00nul",
    "x" * 100_000,
)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_what_models_wrote_is_inert_in_a_spreadsheet_whatever_separator_it_takes(
    delimiter: str, tmp_path: Path
) -> None:
    ids = [f"s{n}" for n in range(len(HOSTILE))]
    run = judged({id_: [0.0] for id_ in ids}, {id_: [1.0] for id_ in ids}, HOSTILE * 2)
    write_form(tmp_path / "form.csv", draw(run, tasks=99), {})
    text = (tmp_path / "form.csv").read_text("utf-8-sig")
    assert all(c.isprintable() or c in "\r\n" for c in text)
    for row in csv.reader(io.StringIO(text), delimiter=delimiter):
        for cell in row:
            assert not re.match(r"[\s\"']*[=+\-@＝＋－＠]", cell) or cell.lstrip(' "').startswith("'"), cell
            assert delimiter != "," or len(cell) <= 32_767
            assert not re.fullmatch(r"[\d/.,:e-]+", cell)


def test_of_an_answer_too_long_for_a_cell_whole_lines_of_both_ends_stay(tmp_path: Path) -> None:
    long = "\n".join(f"{n % 100:02}" for n in range(6_600))
    run = judged({"a": [0.0]}, {"a": [1.0]}, [long, "short"])
    sample = draw(run, tasks=1)
    write_form(tmp_path / "form.csv", sample, {})
    rows = csv.DictReader(io.StringIO((tmp_path / "form.csv").read_text("utf-8-sig")))
    (answer,) = [row["answer"] for row in rows if "short" not in row["answer"]]
    head, left, tail = re.split(r"\n\(\.\.\. (\d+) characters left out \.\.\.\)\n", answer)
    assert (head[:9], tail[-9:]) == ("> 00\n> 01", "> 98\n> 99")
    assert re.fullmatch(r"> \d\d", head.splitlines()[-1])
    assert re.fullmatch(r"> \d\d", tail.splitlines()[0])
    assert len(answer) <= 32_767
    assert int(left) > 0
    save(tmp_path / "form.csv", filled(tmp_path / "form.csv", "y n"))
    assert set(read_form(tmp_path / "form.csv", sample).values()) == {0.25}


@settings(max_examples=30)
@given(
    texts=st.lists(st.text(st.characters(codec="utf-8"), max_size=60), min_size=2, max_size=2),
    delimiter=st.sampled_from(",;\t"),
)
def test_whatever_a_model_wrote_comes_back(
    texts: list[str], delimiter: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = judged({"a": [0.0]}, {"a": [1.0]}, texts)
    sample = draw(run, tasks=1)
    path = tmp_path_factory.mktemp("form") / "form.csv"
    write_form(path, sample, {})
    save(path, filled(path, "y n"), delimiter)
    assert read_form(path, sample) == {item.id: 0.25 for item in sample.items}


def test_a_form_comes_back_as_spreadsheets_save_it(tmp_path: Path) -> None:
    run = judged(
        {"a": [0.0], "b": [0.0]}, {"a": [1.0], "b": [1.0]}, ["é “quoted”; a,b", "two\nlines", "日本", "plain"]
    )
    sample = draw(run, tasks=2)
    path = tmp_path / "form.csv"
    write_form(path, sample, {})
    rows = filled(path, "0,5")
    wanted = {item.id: 0.5 for item in sample.items}
    save(path, rows, ";", "cp1252")
    with pytest.raises(JournalError, match="if letters were lost, save the form as UTF-8"):
        read_form(path, sample)
    for delimiter, encoding in ((",", "utf-8"), (";", "utf-8-sig"), ("\t", "utf-16")):
        save(path, rows, delimiter, encoding)
        assert read_form(path, sample) == wanted
    save(path, reversed(rows[1:]), ";")
    with pytest.raises(JournalError, match="does not name the columns"):
        read_form(path, sample)
    save(path, [rows[0], *reversed(rows[1:]), [""] * 6], ";")
    path.write_bytes(b"sep=;\r\n" + path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    assert read_form(path, sample) == wanted


def test_json_lines_do_as_well(tmp_path: Path) -> None:
    run = forty()
    sample = draw(run, tasks=3)
    path = tmp_path / "form.jsonl"
    write_form(path, sample, {})
    rows = [json.loads(row) for row in path.read_text().splitlines()]
    assert [row["label"] for row in rows] == [None] * 6
    for row, label in zip(rows, (1, 0.25, None, "y n", "n y", "100%"), strict=True):
        row["label"] = label
    path.write_text("".join(json.dumps(row) + "\r\n" for row in rows))
    values = dict.fromkeys(item.id for item in sample.items)
    found = read_form(path, sample)
    assert [found.get(id_) for id_ in values] == [1.0, 0.25, None, 0.25, 0.75, 1.0]


@pytest.mark.parametrize(
    ("label", "problem"),
    [("y", "has 1 answer, but there are 2 criteria"), ("yyn", "has 3 answers"), ("1.5", "neither a number"),
     ("nan", "neither a number"), ("-0.1", "neither a number"), ("maybe", "neither a number")],
)  # fmt: skip
def test_a_label_that_is_none_is_named_with_its_row(label: str, problem: str, tmp_path: Path) -> None:
    sample = draw(forty(), tasks=2)
    path = tmp_path / "form.csv"
    write_form(path, sample, {})
    rows = filled(path)
    rows[2][0] = label
    save(path, rows)
    with pytest.raises(JournalError, match=f"row 3: .*{problem}"):
        read_form(path, sample)


def test_a_form_that_is_not_the_sample_s_is_refused(tmp_path: Path) -> None:
    run = forty()
    sample = draw(run, tasks=5)
    path = tmp_path / "form.csv"
    write_form(path, sample, {})
    rows = filled(path)
    other = tmp_path / "other.csv"
    write_form(other, draw(run, tasks=5, seed=9), {})

    def refused(changed: Iterable[Iterable[str]], why: str) -> None:
        save(path, changed)
        with pytest.raises(JournalError, match=why):
            read_form(path, sample)

    refused([*rows, rows[1]], "is there twice, first at row 2")
    refused(rows[:-1], r"1 row is missing \(a-.*keep its row")
    refused([*rows, filled(other)[1]], "row 12: the id .* is not in the sample")
    answers = [row[3] for row in rows[1:]]
    turned = zip(rows[1:], answers[1:] + answers[:1], strict=True)
    refused(
        [rows[0], *([*row[:3], answer, *row[4:]] for row, answer in turned)],
        "row 2: the answer is not what was written",
    )
    with pytest.raises(JournalError, match="exists, and may hold labels"):
        write_form(path, sample, {})
    path.write_bytes(b"\x00\xff\x00")
    with pytest.raises(JournalError, match="does not name the columns"):
        read_form(path, sample)
    with pytest.raises(JournalError, match="cannot read"):
        read_form(tmp_path / "absent.csv", sample)


# -- what is stored


def test_stored_labels_come_back_and_changes_are_seen(tmp_path: Path) -> None:
    run = forty()
    sample = draw(run, tasks=10)
    labels = labels_of(sample, run, as_the_judge(sample), reads=(20,))
    assert load_labels(tmp_path) is None
    save_labels(tmp_path, labels)
    assert load_labels(tmp_path) == labels
    path = tmp_path / "labels.json"
    value = json.loads(path.read_text())
    assert violations("labels", value) == []
    for key, changed, why in (
        ("tasks", 11, "was changed by hand"),
        ("labels", {"a-x": 2}, "malformed: /labels"),
        ("schema", "tfgrpo.labels/2", "malformed: /schema"),
    ):
        path.write_text(json.dumps(value | {key: changed}))
        with pytest.raises(JournalError, match=why):
            load_labels(tmp_path)
    path.write_text("{")
    with pytest.raises(JournalError, match=r"cannot read .*labels\.json"):
        load_labels(tmp_path)


def test_labels_of_another_run_and_of_changed_answers_are_refused() -> None:
    run = forty()
    sample = draw(run, tasks=10)
    labels = labels_of(sample, run, as_the_judge(sample))
    with pytest.raises(JournalError, match="labels are of run 'run1', not of 'run2'"):
        labels_report(replace(run, run_id="run2"), labels)
    first = run.phases[-1].groups
    changed = tuple(
        replace(group, rollouts=tuple(replace(r, answer=r.answer + "!") for r in group.rollouts))
        for group in first
    )
    again = replace(run, phases=(*run.phases[:-1], replace(run.phases[-1], groups=changed)))
    with pytest.raises(JournalError, match="no longer those of the run's sweeps"):
        labels_report(again, labels)
    for other in (replace(labels, labels={"a-1": 1.0}), replace(labels, sample="0" * 64)):
        with pytest.raises(JournalError, match="no longer those of the run's sweeps"):
            labels_report(run, other)


# -- what if


def test_a_gain_seen_through_a_known_judge_is_a_what_if() -> None:
    run = forty()  # the judge says .125, later .875
    told = what_if(run, [(1.0, 1.0), (1.0, 1.0)])
    assert "the gain would be +0.750 (" in told
    assert told.startswith("what if (no claim)")
    assert "lower the second share to 0.143 in the final sweep" in told  # 1 - (.875 - .125) / .875
    assert re.search(r"would be \+0.93[78] \(", what_if(run, [(0.9, 0.9), (0.9, 0.9)]))  # .75 / .8
    pleased = what_if(run, [(0.9, 0.9), (0.9, 0.3)])  # (.875 - .7) / .2 - (.125 - .1) / .8
    assert "would be +0.844 (" in pleased
    assert "0.9 of the good and 0.9 of the bad answers before, 0.9 and 0.3 after" in pleased
    with pytest.raises(SettingError, match="no better than chance"):
        what_if(run, [(0.5, 0.5), (0.5, 0.5)])
    with pytest.raises(SettingError, match="no what-if"):
        what_if(run, [(1.0, 1.0), (0.5, 0.5)])
    with pytest.raises(JournalError, match="no scenario that the judge scored"):
        what_if(make_run({"a": [1]}, final={"a": [1]}), [(1.0, 1.0), (1.0, 1.0)])

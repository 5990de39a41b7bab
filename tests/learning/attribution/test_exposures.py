"""Exposures of a run: derived, written down, read back, and made again where a file is not to be trusted."""

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.attribution.exposures import KEYS, LESSONS, earlier, written
from support.builders import PACK_STAMP, make_experience, make_exposure, make_group, make_pack, make_rollout
from support.jobs import ScriptedActor, make_job, run_job, suite, three_or_not

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.files import EXPOSURES
from pytest_tfgrpo.core.lessons import Exposure
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.learning.attribution import exposures, pooling
from pytest_tfgrpo.learning.attribution.exposures import (
    RunExposures,
    content_key,
    exposures_of,
    history,
    measure_of,
    read,
    record_of,
    within,
    write,
)
from pytest_tfgrpo.learning.library.library import of

LESSON = make_experience(summary32="For letter words use count.", stamp_signature=PACK_STAMP)
KEY = content_key(LESSON)


@pytest.fixture
def made(original: tuple[Path, Run], tmp_path: Path) -> tuple[Path, Run]:
    """A run that started with one lesson, in a folder of the test's own."""
    folder = tmp_path / "out" / "demo" / "runs" / "run1"
    shutil.copytree(original[0], folder)
    return folder, original[1]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    tmp_path = tmp_path_factory.mktemp("original")
    folder = tmp_path / "out" / "demo" / "runs" / "run1"
    job = make_job(
        ScriptedActor(three_or_not),
        tmp_path,
        scenarios=suite(train=20),
        job_library=of([LESSON]),
        lesson_dropout=0.5,
    )
    run, _ = run_job(job, folder)
    return folder, run


def derive(credited: list[float | None], **changes: object) -> list[object]:
    ids = {"experiences": ("a",), "left_out": ("b",)} | changes
    rollouts = tuple(make_rollout(i, c, **ids) for i, c in enumerate(credited))
    group = make_group(credited, rollouts=rollouts)
    return list(
        exposures_of(
            [group],
            run_id="run1",
            series="s",
            propensity=0.8,
            stamps={"count-words": "f" * 64},
            keys={"a": "key-a", "b": "key-b"},
        )
    )


def test_a_group_shows_its_mean_reward_without_errors_and_counts_them() -> None:
    (row,) = derive([1.0, 0.0, 0.0, None])
    assert row == make_exposure(
        scenario="f" * 64, series="s", reward=1 / 3, errors=1, included=("key-a",), left_out=("key-b",)
    )


def test_a_failed_rollout_is_no_error() -> None:
    ids = {"experiences": ("a",), "left_out": ("b",)}
    rollouts = (make_rollout(0, 1.0, **ids), make_rollout(1, 0.0, status="failed", **ids))
    group = make_group([1.0, 0.0], rollouts=rollouts)
    (row,) = exposures_of(
        [group],
        run_id="run1",
        series="s",
        propensity=0.8,
        stamps={"count-words": "f" * 64},
        keys={"a": "key-a", "b": "key-b"},
    )
    assert (row.reward, row.errors) == (0.5, 0)


def test_a_group_of_errors_shows_no_reward() -> None:
    (row,) = derive([None, None])
    assert row == make_exposure(
        scenario="f" * 64, series="s", reward=None, errors=2, included=("key-a",), left_out=("key-b",)
    )


def test_a_group_without_lessons_shows_nothing() -> None:
    assert derive([1.0, 0.0], experiences=(), left_out=()) == []


def test_a_majority_is_no_ground_truth() -> None:
    rollouts = tuple(make_rollout(i, 1.0, experiences=("a",)) for i in range(2))
    (row,) = exposures_of(
        [make_group([1.0, 1.0], rollouts=rollouts)],
        run_id="run1",
        series="s",
        propensity=0.8,
        stamps={"count-words": "f" * 64},
        keys={"a": "key-a"},
        unknown=frozenset({"count-words"}),
    )
    assert row.reward is None


def test_without_chance_there_is_nothing_to_learn_from(made: tuple[Path, Run]) -> None:
    _, run = made
    certain = tuple(replace(r, phase=replace(r.phase, lesson_dropout=0.0)) for r in run.phases)
    assert record_of(replace(run, phases=certain)).rows == ()


@pytest.mark.parametrize(("truth", "known"), [("checks", True), ("judge", True), ("majority", False)])
def test_a_vote_of_the_majority_shows_nothing_of_a_lesson(
    made: tuple[Path, Run], truth: Any, known: bool
) -> None:
    _, run = made
    told = replace(run, scenarios=tuple(replace(s, truth=truth) for s in run.scenarios))
    assert {row.reward is not None for row in record_of(told).rows} == {known}


def test_the_file_follows_from_the_run_and_from_its_journal(made: tuple[Path, Run]) -> None:
    folder, run = made
    record = record_of(run)
    assert len(record.rows) == 40
    assert {key for row in record.rows for key in row.left_out} >= {KEY}
    write(folder, record)
    assert read(folder) == record
    (folder / EXPOSURES).unlink()
    assert pooling.record(folder) == record
    assert read(folder) == record, "what was had from the journal is kept"


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def short(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def foreign(path: Path) -> None:
    path.write_text(path.read_text().replace('"run1"', '"run2"'))


def not_a_number(path: Path) -> None:
    path.write_text(path.read_text().replace('"reward": 0.', '"reward": NaN, "x": 0.', 1))


def out_of_range(path: Path) -> None:
    path.write_text(path.read_text().replace('"propensity": 0.5', '"propensity": 1.0', 1))


def all_but_impossible(path: Path) -> None:
    path.write_text(path.read_text().replace('"propensity": 0.5', '"propensity": 1e-300', 1))


def other_shape(path: Path) -> None:
    path.write_text(path.read_text().replace('"included": [', '"included": [["x"], ', 1))


def of_another_schema(path: Path) -> None:
    path.write_text(path.read_text().replace("tfgrpo.exposures/1", "tfgrpo.exposures/9"))


def deep(path: Path) -> None:
    path.write_text("[" * 100_000 + "\n")


def binary(path: Path) -> None:
    path.write_bytes(bytes(range(256)))


def older_than_the_journal(path: Path) -> None:
    path.write_text(path.read_text().replace('"journal_bytes": ', '"journal_bytes": 1'))


@pytest.mark.parametrize(
    "spoil",
    [torn, short, foreign, not_a_number, out_of_range, all_but_impossible, other_shape,
     of_another_schema, deep, binary, older_than_the_journal],
)  # fmt: skip
def test_a_file_that_is_not_to_be_trusted_is_made_again(
    made: tuple[Path, Run], spoil: Callable[[Path], None]
) -> None:
    folder, run = made
    write(folder, record_of(run))
    spoil(folder / EXPOSURES)
    assert read(folder) is None
    assert pooling.record(folder) == record_of(run)


def test_a_run_that_cannot_be_read_is_left_out_and_named(made: tuple[Path, Run]) -> None:
    folder, _ = made
    (folder / "journal.jsonl").write_text('{"n":1}\n{"n":2}\n')
    found, (complaint,) = pooling.records([folder])
    assert found == []
    assert complaint.startswith("run run1 is left out of the lesson effects: ")
    with pytest.raises(JournalError):
        pooling.record(folder)


def test_runs_measure_alike_by_the_same_agent_and_judge_with_the_same_weight() -> None:
    measures = [
        measure_of({"actor": actor, "packs": packs}, {"judge": judge}, {"judge_weight": weight})
        for actor, packs, judge, weight in (
            ("a", "p", "j", 0.5),
            ("a", "q", "j", 0.5),
            ("b", "p", "j", 0.5),
            ("a", "p", "k", 0.5),
            ("a", "p", "j", 0.6),
        )
    ]
    assert measures[0] == measures[1], "a lesson's key holds the stamp of its pack"
    assert len({*measures}) == 4


def test_a_later_run_takes_along_what_was_seen_of_the_lessons_it_starts_with(made: tuple[Path, Run]) -> None:
    folder, run = made
    out = folder.parents[2]
    found = pooling.earlier_exposures(
        out, "demo", of([LESSON]), stamps=run.stamps, identities=run.identities, settings=run.settings
    )
    rows = history(json.loads(json.dumps(found)))
    assert rows == within(record_of(run).rows, frozenset({KEY}))
    assert {*(k for r in rows for k in (*r.included, *r.left_out))} == {KEY}


@pytest.mark.parametrize("change", ["library", "actor", "judge", "pack", "off", "nowhere"])
def test_other_lessons_actors_judges_and_packs_are_not_pooled(made: tuple[Path, Run], change: str) -> None:
    folder, run = made
    lesson = replace(LESSON, stamp_signature="b" * 64) if change == "pack" else LESSON
    found = pooling.earlier_exposures(
        None if change == "nowhere" else folder.parents[2],
        "demo",
        of([]) if change == "library" else of([lesson]),
        stamps={"actor": "x"} if change == "actor" else run.stamps,
        identities={"judge": {"model": "m"}} if change == "judge" else run.identities,
        settings={**run.settings, "lesson_dropout": 0.0} if change == "off" else run.settings,
    )
    assert found == {}


def test_only_the_latest_groups_are_taken_along(
    made: tuple[Path, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, run = made
    monkeypatch.setattr(pooling, "MAX_EARLIER", 7)
    found = pooling.earlier_exposures(
        folder.parents[2],
        "demo",
        of([LESSON]),
        stamps=run.stamps,
        identities=run.identities,
        settings=run.settings,
    )
    assert history(found) == within(record_of(run).rows, frozenset({KEY}))[-7:]


SHOWN = st.lists(st.sampled_from(KEYS), max_size=2, unique=True).map(tuple)
RUNS = st.lists(
    st.tuples(st.sampled_from(["ours", "ours", "other"]), st.lists(st.tuples(SHOWN, SHOWN), max_size=8)),
    max_size=5,
)


@given(runs=RUNS, wanted=st.integers(1, 3), most=st.integers(1, 12), block=st.integers(400, 3000))
@settings(max_examples=60, deadline=None)
def test_what_is_read_from_the_end_is_what_all_runs_show_last(
    runs: list[tuple[str, list[tuple[Any, Any]]]], wanted: int, most: int, block: int
) -> None:
    keys, rows = frozenset(KEYS[:wanted]), list[Exposure]()
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooling, "MAX_EARLIER", most)
        patch.setattr(exposures, "BLOCK", block)
        for n, (measure, shown) in enumerate(runs):
            own = [make_exposure(k, included=a, left_out=b) for k, (a, b) in enumerate(shown)]
            folder = written(Path(name), f"run{n}", own, measure)
            whole = read(folder)
            assert whole is not None
            rows += within(whole.rows, keys) if measure == "ours" else []
        assert history(earlier(Path(name), LESSONS[:wanted])) == rows[-most:]


@pytest.mark.parametrize(
    "spoil", [torn, short, foreign, of_another_schema, deep, binary, older_than_the_journal]
)
def test_a_later_run_takes_what_a_spoilt_file_should_hold_from_the_journal(
    made: tuple[Path, Run], spoil: Callable[[Path], None]
) -> None:
    folder, run = made
    given = {"stamps": run.stamps, "identities": run.identities, "settings": run.settings}
    found = pooling.earlier_exposures(folder.parents[2], "demo", of([LESSON]), **given)
    assert read(folder) == record_of(run)
    spoil(folder / EXPOSURES)
    assert pooling.earlier_exposures(folder.parents[2], "demo", of([LESSON]), **given) == found
    assert read(folder) == record_of(run)


def test_the_rows_read_from_the_end_are_the_same_wherever_a_block_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [make_exposure(n, included=(KEYS[n % 3],)) for n in range(6)]
    folder = written(tmp_path, "run1", rows)
    longest = max(map(len, (folder / EXPOSURES).read_bytes().splitlines(keepends=True)))
    for size in range(longest, 2 * longest):
        monkeypatch.setattr(exposures, "BLOCK", size)
        found = exposures.read_latest(folder, measure="ours", keys=frozenset(KEYS), most=10)
        assert found is not None, size
        assert [row.scenario for row in found[0]] == [row.scenario for row in reversed(rows)]


def test_runs_before_those_that_show_enough_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [make_exposure(n, included=(KEYS[0],)) for n in range(9)]
    (written(tmp_path, "run1", rows) / EXPOSURES).write_text("damaged, as is its journal\n")
    written(tmp_path, "run2", rows)
    found = earlier(tmp_path, LESSONS)
    assert [row.run_id for row in history(found)] == ["run2"] * 9
    assert found["exposures_unread"][0].startswith("run run1 is left out of the lesson effects: ")
    monkeypatch.setattr(pooling, "MAX_EARLIER", 9)
    assert earlier(tmp_path, LESSONS) == {"exposures": found["exposures"]}


def test_a_start_reads_no_more_than_so_many_bytes_and_names_the_runs_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [make_exposure(n, included=(KEYS[0],)) for n in range(9)]
    for n in range(3):
        written(tmp_path, f"run{n}", rows)
    size = (tmp_path / "demo/runs/run0" / EXPOSURES).stat().st_size
    monkeypatch.setattr(pooling, "MAX_BYTES", size * 3 // 2)
    found = earlier(tmp_path, LESSONS)
    ids = [row.run_id for row in history(found)]
    assert ids[-9:] == ["run2"] * 9
    assert set(ids[:-9]) == {"run1"}
    assert len(ids) < 18
    (complaint,) = found["exposures_unread"]
    assert complaint.startswith("the first groups of run run1, and all runs before it, are left out")


def test_a_file_too_large_to_be_read_whole_is_read_from_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [make_exposure(n, included=(KEYS[0],)) for n in range(200)]
    folder = written(tmp_path, "run1", rows)
    monkeypatch.setattr(exposures, "MAX_BYTES", 20_000)
    monkeypatch.setattr(pooling, "MAX_BYTES", 20_000)
    assert read(folder) is None
    found = history(earlier(tmp_path, LESSONS))
    assert found == [replace(row, run_id="run1") for row in rows[-len(found) :]]
    assert 20 < len(found) < 200


def test_a_record_names_who_acted_and_which_epochs_ended(made: tuple[Path, Run]) -> None:
    _, run = made
    record = record_of(run)
    assert record == RunExposures(
        run_id="run1", measure=record.measure, actor="scripted", epochs=(1, 2), rows=record.rows
    )
    cut = [replace(r, status="incomplete") if r.phase.epoch == 2 else r for r in run.phases]
    assert record_of(replace(run, phases=tuple(cut))).epochs == (1,)
    assert make_pack().stamp == PACK_STAMP


@pytest.mark.parametrize(
    ("changes", "included", "left_out"),
    [
        ({"experiences": ("l0", "gone"), "left_out": ("l1",)}, ["l0"], ["l1"]),
        ({"experiences": ("l0", "l1"), "tossed": ("l1", "gone")}, ["l1"], []),
        ({"experiences": (), "left_out": ("gone", "l1")}, [], ["l1"]),
        ({"experiences": ("l0",), "tossed": ()}, None, None),
        ({"experiences": ()}, None, None),
    ],
)
def test_a_group_shows_what_chance_did_to_the_lessons_that_are_known(
    changes: dict[str, Any], included: list[str] | None, left_out: list[str] | None
) -> None:
    scored = (1.0, 0.5, None)
    rollouts = tuple(make_rollout(n, credit, **changes) for n, credit in enumerate(scored))
    group = make_group([*scored], rollouts=rollouts)
    given: dict[str, Any] = {
        "run_id": "r", "series": "s", "stamps": {"count-words": "x"}, "keys": {"l0": "l0", "l1": "l1"}
    }  # fmt: skip
    rows = exposures_of([group], propensity=0.8, **given)
    assert [(list(row.included), list(row.left_out)) for row in rows] == (
        [] if included is None else [(included, left_out)]
    )
    assert all((row.reward, row.errors) == (0.75, 1) for row in rows)
    assert exposures_of([group], propensity=1.0, **given) == []
    mute = exposures_of([group], propensity=0.8, unknown=frozenset({"count-words"}), **given)
    assert [row.reward for row in mute] == [None] * len(rows)

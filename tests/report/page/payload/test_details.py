"""The file beside the page of a large run."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.sweeps import make_run

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.files import DETAILS, REPORT_HTML
from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.report.comparison.compare import versus
from pytest_tfgrpo.report.page import choice
from pytest_tfgrpo.report.page.html import html, write_page
from pytest_tfgrpo.report.page.payload import details, payload
from pytest_tfgrpo.report.page.payload.details import DetailsFile
from pytest_tfgrpo.report.value import build

TOTAL, HELD, SHARD = 25, 6, 10


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "ROWS", HELD)
    for module in (payload, details):
        monkeypatch.setattr(module, "SHARD", SHARD)
    monkeypatch.setattr(details, "CHUNK", 3_000)


def large(run_id: str = "run1") -> Run:
    before = {f"s{n}": [1, 1] for n in range(TOTAL)}
    return make_run(before, before | {"s20": [0, 0], "s21": [0, 1]}, {"t0": [0, 1]}, run_id=run_id)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = large()
    write_page(tmp_path, build(run, None), run)
    return tmp_path


def index_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="index">(.*?)</script>', page)
    assert found is not None
    value: dict[str, Any] = json.loads(found[1])
    return value


def read(piece: bytes | None) -> dict[str, Any]:
    assert piece is not None
    value: dict[str, Any] = json.loads(gzip.decompress(piece))
    return value


def test_every_scenario_is_in_the_file_once_and_the_first_are_those_of_the_page(folder: Path) -> None:
    file = DetailsFile(folder / DETAILS)
    page = index_of((folder / REPORT_HTML).read_text())
    parts = [read(file.piece("rows", n)) for n in (0, SHARD, 2 * SHARD)]
    rows = [row for part in parts for row in part["rows"]]
    assert [part["start"] for part in parts] == [0, SHARD, 2 * SHARD]
    assert sorted(row[0] for row in rows) == sorted([f"s{n}" for n in range(TOTAL)] + ["t0"])
    assert [row[0] for row in page["rows"]] == [row[0] for row in rows[:HELD]]
    assert page["beyond"] == {
        "key": file.key,
        "rows": TOTAL + 1,
        "shard": SHARD,
        "splits": {"eval": TOTAL, "train": 1},
        "command": "tfgrpo view run1",
    }
    assert [len(part["words"]["task"]) for part in parts] == [len(part["rows"]) for part in parts]


def test_the_rollouts_of_each_row_are_in_the_part_that_is_named_by_it(folder: Path) -> None:
    file = DetailsFile(folder / DETAILS)
    rows = [row for n in range(0, TOTAL + 1, SHARD) for row in read(file.piece("rows", n))["rows"]]
    found = 0
    for n, (id_, *_) in enumerate(rows):
        groups = read(file.piece("groups", n))["groups"]
        own = {place: group for place, group in groups.items() if place.partition(".")[0] == str(n)}
        assert {group["scenario"] for group in own.values()} == {id_}
        assert all(isinstance(r["frames"], list) for group in own.values() for r in group["rollouts"])
        found += len(own)
    assert found == 2 * TOTAL + 1
    assert len({file.piece("groups", n) for n in range(len(rows))}) > 3


def test_lessons_and_clusters_are_told_by_part_and_by_the_page_for_its_own_rows(folder: Path) -> None:
    file, page = DetailsFile(folder / DETAILS), index_of((folder / REPORT_HTML).read_text())
    parts = [read(file.piece("rows", n)) for n in range(0, TOTAL + 1, SHARD)]
    for key, rows in page["clusters"].items():
        told = [n for part in parts for n in part["clusters"][key]]
        assert told
        assert rows == [n for n in told if n < HELD]
    for part in parts:
        stop = part["start"] + len(part["rows"])
        assert all(part["start"] <= n < stop for rows in part["clusters"].values() for n in rows)


def test_the_file_is_lines_of_json_for_any_program(folder: Path) -> None:
    lines = [json.loads(line) for line in gzip.decompress((folder / DETAILS).read_bytes()).splitlines()]
    assert lines[0] == {"schema": "tfgrpo.details/1", "run_id": "run1", "scenarios": TOTAL + 1}
    assert sum("words" in line for line in lines) == 3


def test_what_no_part_has_is_nothing(folder: Path) -> None:
    file = DetailsFile(folder / DETAILS)
    assert file.piece("rows", -1) is None
    assert file.piece("../report", 0) is None


@pytest.mark.parametrize("damage", ["cut", "empty", "tail", "table"])
def test_a_damaged_file_is_named_with_what_makes_it_again(folder: Path, damage: str) -> None:
    path = folder / DETAILS
    data = path.read_bytes()
    tail = details._tail(0, 0)
    changed = {
        "cut": data[:-7],
        "empty": b"",
        "tail": data[: -len(tail)] + details._tail(len(data) * 2, 10),
        "table": data[: -len(tail)] + details._tail(0, 30),
    }
    path.write_bytes(changed[damage])
    with pytest.raises(
        JournalError, match=f"report-details.jsonl.gz is damaged .* tfgrpo report {folder.name}"
    ):
        DetailsFile(path)


def test_a_table_that_unpacks_to_more_than_fits_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(details, "LARGEST_TABLE", 50)
    with pytest.raises(JournalError, match="is damaged"):
        DetailsFile(folder / DETAILS)


def test_the_page_alone_says_what_it_holds_and_how_to_see_the_others(folder: Path) -> None:
    for page in ((folder / REPORT_HTML).read_text(), html(build(large(), None), large())):
        text = " ".join(re.sub("<[^>]+>", "", page).split())
        assert f"This page holds {HELD} of {TOTAL + 1} scenarios" in text
        assert "run tfgrpo view run1 in the project of the run" in text
    assert "connect-src" not in page
    assert "connect-src &#39;self&#39;; base-uri" in (folder / REPORT_HTML).read_text()


def test_a_page_does_not_grow_with_the_run(folder: Path) -> None:
    size = (folder / REPORT_HTML).stat().st_size
    before = {f"s{n}": [1, 1] for n in range(20 * TOTAL)}
    run = make_run(before, before | {"s20": [0, 0], "s21": [0, 1]}, {"t0": [0, 1]})
    assert len(html(build(run, None), run)) < 1.05 * size


def test_figures_of_a_page_count_all_scenarios(folder: Path) -> None:
    page = (folder / REPORT_HTML).read_text()
    assert f"final: {2 * TOTAL} scored" in page


def test_a_comparison_holds_what_differs_and_needs_no_file() -> None:
    own, other = large("run2"), large()
    other = make_run(*[{f"s{n}": [1, 1] for n in range(TOTAL)}] * 2, run_id="run1")
    page = html(build(own, None), own, versus(other, own), [other])
    index = index_of(page)
    assert {"s20", "s21"} < {row[0] for row in index["rows"]}
    assert len(index["rows"]) == len(index["compare"]["rows"]) + 1 == HELD
    assert "which shows those of run B in the project" in page
    assert (index["beyond"]["key"], "connect-src" in page) == ("", False)


def test_a_run_that_fits_has_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "ROWS", TOTAL + 1)
    run = large()
    report = build(run, None)
    write_page(tmp_path, report, run)
    assert [path.name for path in tmp_path.iterdir()] == [REPORT_HTML]
    page = (tmp_path / REPORT_HTML).read_text()
    assert page == html(report, run)
    assert not {"beyond"} & index_of(page).keys()


def test_equal_runs_give_equal_files(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    again = tmp_path_factory.mktemp("again")
    write_page(again, build(large(), None), large())
    for name in (DETAILS, REPORT_HTML):
        assert (again / name).read_bytes() == (folder / name).read_bytes()

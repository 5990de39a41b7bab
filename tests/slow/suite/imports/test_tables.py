"""Datasets of Hugging Face become scenarios."""

from datetime import date

import pytest
from datasets import Dataset, DatasetDict

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.suite.imports.formats import read_files
from pytest_tfgrpo.suite.imports.tables import TableColumns

ROWS = [{"question": "2 + 2?", "answer": "4"}, {"question": "3 + 3?", "answer": "6"}]


def read(form, path):
    return read_files(form, [path], columns=TableColumns(), expect=None).scenarios


def test_features_of_a_dataset_that_nobody_named_are_counted(tmp_path):
    Dataset.from_list([{**row, "source": "s"} for row in ROWS]).save_to_disk(str(tmp_path / "d"))
    found = read_files("hf", [tmp_path / "d"], columns=TableColumns(), expect=None)
    assert found.left_out == {"`source`": (2, "d, all, row 0")}


@pytest.mark.parametrize("form", ["parquet", "arrow", "folder"])
def test_a_dataset_of_hugging_face_is_read_from_local_files(tmp_path, form):
    data = Dataset.from_list(ROWS)
    path = tmp_path / f"sums.{form}"
    if form == "parquet":
        data.to_parquet(str(path))
    else:
        data.save_to_disk(str(tmp_path / "saved"))
        path = tmp_path / "saved"
    if form == "arrow":
        (path,) = (tmp_path / "saved").glob("*.arrow")
    assert [(one["prompt"], one["checks"][0]["value"]) for one in read("hf", path)] == [
        ("2 + 2?", "4"),
        ("3 + 3?", "6"),
    ]


def test_a_date_in_a_dataset_is_its_text(tmp_path):
    Dataset.from_list([{"question": "When?", "answer": date(2026, 11, 23)}]).save_to_disk(str(tmp_path / "d"))
    (scenario,) = read("hf", tmp_path / "d")
    assert "2026-11-23" in scenario["checks"][0]["value"]


def test_all_parts_of_a_dataset_are_read(tmp_path):
    DatasetDict({"train": Dataset.from_list(ROWS), "test": Dataset.from_list(ROWS[:1])}).save_to_disk(
        str(tmp_path / "d")
    )
    assert len(read("hf", tmp_path / "d")) == 3


@pytest.mark.parametrize("name", ["x.csv", "broken.parquet", "empty"])
def test_what_is_no_dataset_is_refused_by_name(tmp_path, name):
    path = tmp_path / name
    path.mkdir() if name == "empty" else path.write_bytes(b"PAR1")
    with pytest.raises(ScenarioError, match=name):
        read("hf", path)

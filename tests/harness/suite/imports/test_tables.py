"""Tables with any column names become scenarios; so do datasets of Hugging Face."""

import json
import re
import sys
from datetime import date
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.harness.scoring.checks.registry import KINDS
from pytest_tfgrpo.harness.suite.imports import hugging_face
from pytest_tfgrpo.harness.suite.imports.formats import read_files, write_scenarios
from pytest_tfgrpo.harness.suite.imports.imported import Imported
from pytest_tfgrpo.harness.suite.imports.tables import TableColumns
from pytest_tfgrpo.harness.suite.scenario_files import load_scenarios

ROWS = [{"question": "2 + 2?", "answer": "4"}, {"question": "3 + 3?", "answer": "6"}]


def read(form, path, expect=None, **columns):
    return read_files(form, [path], columns=TableColumns(**columns), expect=expect).scenarios


def test_usual_names_of_columns_are_known(imported):
    (scenario,) = imported("csv", "sums.csv", "question,expected\n2 + 2?,4\n").scenarios
    assert scenario == {"id": "sums-1", "prompt": "2 + 2?", "checks": [{"kind": "exact", "value": "4"}]}


def test_other_columns_are_named(imported):
    text = json.dumps({"q": "2 + 2?", "gold": 4, "key": "sum 1", "topic": "sums", "part": "train"}) + "\n"
    (scenario,) = imported(
        "jsonl", "x.jsonl", text, "number", prompt="q", answer="gold", id="key", domain="topic", split="part"
    ).scenarios
    assert scenario == {
        "id": "sum-1",
        "prompt": "2 + 2?",
        "checks": [{"kind": "number", "value": 4.0}],
        "domain": "sums",
        "split": "train",
    }


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("a,b\n1,2\n", {}, r"x\.csv:2: which column is the prompt\? there are a, b; name it with --prompt"),
        ("question,b\n1,2\n", {"answer": "bb"}, r"x\.csv:2: there is no column 'bb'; did you mean 'b'\?"),
        ("question,answer\n1\n", {}, r"x\.csv:2: a row must have 2 cells"),
        ('question,answer\n"1\n', {}, r"x\.csv:\d: not CSV"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_by_file_and_line(imported, text, columns, message):
    with pytest.raises(ScenarioError, match=message):
        imported("csv", "x.csv", text, **columns)


def test_rows_that_do_not_fit_are_counted(imported):
    text = "question,answer,split\nHow many?,four,train\nHow many?,4,validation\n ,4,eval\n"
    found = imported("csv", "x.csv", text, "number", split="split")
    assert [scenario["id"] for scenario in found.scenarios] == ["x-2"]
    assert {text.partition(": ")[2] for text in found.report()} == {
        "expected answers that are no number (first: x.csv:2)",
        "splits that are none of train, dev, eval (first: x.csv:3)",
        "rows with an empty prompt (first: x.csv:4)",
    }


def test_columns_that_nobody_named_are_counted(imported):
    text = "question,expected,topic,level,note\n2 + 2?,4,sums,1,\n3 + 3?,6,sums,,\n"
    found = imported("csv", "x.csv", text, domain="topic")
    assert found.left_out == {"`level`": (1, "x.csv:2")}


@pytest.fixture
def saved(monkeypatch, tmp_path):
    """Put in place of Hugging Face's library one that reads what is set here."""
    stored = {}

    def load(path, **options):
        if path not in stored:
            raise OSError("no such dataset")
        return stored[path]

    library = ModuleType("datasets")
    library.__spec__ = ModuleSpec("datasets", None)
    library.Dataset = SimpleNamespace(from_parquet=load, from_file=load)
    library.load_from_disk = load
    monkeypatch.setitem(sys.modules, "datasets", library)

    def save(name, rows):
        path = tmp_path / name
        path.write_bytes(b"PAR1") if path.suffix else path.mkdir()
        stored[str(path)] = rows
        return path

    return save


def test_features_of_a_dataset_that_nobody_named_are_counted(saved):
    path = saved("d", [{**row, "source": "s"} for row in ROWS])
    found = read_files("hf", [path], columns=TableColumns(), expect=None)
    assert found.left_out == {"`source`": (2, "d, all, row 0")}


@pytest.mark.parametrize("name", ["sums.parquet", "sums.arrow", "sums"])
def test_a_dataset_of_hugging_face_is_read_from_local_files(saved, name):
    assert [(one["prompt"], one["checks"][0]["value"]) for one in read("hf", saved(name, ROWS))] == [
        ("2 + 2?", "4"),
        ("3 + 3?", "6"),
    ]


def test_a_date_in_a_dataset_is_its_text(saved):
    (scenario,) = read("hf", saved("d", [{"question": "When?", "answer": date(2026, 11, 23)}]))
    assert "2026-11-23" in scenario["checks"][0]["value"]


def test_all_parts_of_a_dataset_are_read(saved):
    assert len(read("hf", saved("d", {"train": ROWS, "test": ROWS[:1]}))) == 3


@pytest.mark.parametrize("name", ["x.csv", "broken.parquet", "empty"])
def test_what_is_no_dataset_is_refused_by_name(tmp_path, saved, name):
    path = tmp_path / name
    path.mkdir() if name == "empty" else path.write_bytes(b"PAR1")
    with pytest.raises(ScenarioError, match=name):
        read("hf", path)


def test_without_the_library_a_dataset_is_refused_with_what_installs_it(tmp_path, monkeypatch):
    monkeypatch.setattr(hugging_face, "find_spec", lambda name: None)
    with pytest.raises(ScenarioError, match=re.escape("pip install 'pytest-tfgrpo[datasets]'")):
        read("hf", tmp_path / "x.parquet")


def test_nothing_is_overwritten_without_force(tmp_path):
    found = Imported()
    found.add("a", {"prompt": "p", "checks": [{"kind": "exact", "value": "x"}]})
    target, n = write_scenarios(found, tmp_path / "suite", "sums", force=False)
    assert (target.name, n) == ("sums.scenarios.jsonl", 1)
    with pytest.raises(ScenarioError, match="exists; name another folder with --into, or replace it with"):
        write_scenarios(found, tmp_path / "suite", "sums", force=False)
    write_scenarios(found, tmp_path / "suite", "sums", force=True)


def test_what_would_be_no_valid_scenario_is_not_written(tmp_path):
    found = Imported()
    found.add("bad", {"prompt": "p", "checks": [{"kind": "regex", "pattern": "("}]})
    with pytest.raises(ScenarioError, match=r"nothing could be imported\nnot carried over, 1 time: .* valid"):
        write_scenarios(found, tmp_path, "x", force=False)


@reaches("scenarios")
@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20)), min_size=1, max_size=5))
@settings(max_examples=12)
def test_whatever_a_table_holds_what_is_written_can_be_loaded(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("any")
    source = folder / "t.jsonl"
    source.write_text("".join(json.dumps({"prompt": p, "answer": a, "id": a}) + "\n" for p, a in rows))
    found = read_files("jsonl", [source], columns=TableColumns(id="id"), expect=None)
    if reached("scenarios", found.scenarios):
        target, n = write_scenarios(found, folder / "suite", "t", force=False)
        assert len(load_scenarios(target, root=folder, kinds=KINDS)) == n

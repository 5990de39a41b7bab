"""Tables with any column names become scenarios; so do datasets of Hugging Face."""

import csv
import io
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
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.documents.csv_rows import csv_table
from pytest_tfgrpo.suite.imports import hugging_face
from pytest_tfgrpo.suite.imports.formats import read_files, write_scenarios
from pytest_tfgrpo.suite.imports.imported import Imported
from pytest_tfgrpo.suite.imports.tables import TableColumns
from pytest_tfgrpo.suite.scenario_files import load_scenarios

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


def test_examples_of_langsmith_hold_their_columns_in_objects(imported):
    row = {"id": "7", "inputs": {"question": "2 + 2?", "style": "short"}, "outputs": {"answer": "4"}}
    text = json.dumps(row) + "\n"
    expected = {"prompt": "2 + 2?", "checks": [{"kind": "exact", "value": "4"}]}
    found = imported("jsonl", "x.jsonl", text, id="id")
    assert found.scenarios == [{"id": "7", **expected}]
    assert set(found.left_out) == {"`inputs.style`"}
    with pytest.raises(ScenarioError, match=r"no column 'inputs.text'; did you mean 'inputs.style'\?"):
        imported("jsonl", "x.jsonl", text, prompt="inputs.text")
    named = imported("jsonl", "x.jsonl", text, prompt="inputs.style", answer="outputs.answer").scenarios
    assert named[0]["prompt"] == "short"


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("a,b\n1,2\n", {}, r"x\.csv:2: which column is the prompt\? there are a, b; name it with --prompt"),
        ("question,b\n1,2\n", {"answer": "bb"}, r"x\.csv:2: there is no column 'bb'; did you mean 'b'\?"),
        ("question,answer\n1\n", {}, r"x\.csv:2: a row must have 2 cells, not 1"),
        ("a;b\n1;2\n", {}, r"x\.csv:2: 'a;b' is one column, separated by semicolons; save the file with c"),
        ("a;b,c\n1,2\n", {}, r"x\.csv:2: which column is the prompt\? there are a;b, c; name it"),
        ('question,answer\n"1\n', {}, r"x\.csv:\d: not CSV"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_by_file_and_line(imported, text, columns, message):
    with pytest.raises(ScenarioError, match=message):
        imported("csv", "x.csv", text, **columns)


def test_rows_that_do_not_fit_are_counted(imported):
    text = "question,answer,split\nHow many?,four,train\nHow many?,4,validation\n ,4,eval\n"
    found = imported("csv", "x.csv", text, "number", split="split")
    (scenario,) = found.scenarios
    assert scenario["id"] == "x-2"
    assert "split" not in scenario
    assert {text.partition(": ")[2] for text in found.report()} == {
        "expected answers that are no number (first: x.csv:2)",
        "splits that are none of train, dev, eval (first: x.csv:3)",
        "prompts that are empty (first: x.csv:4)",
    }


def test_columns_that_nobody_named_are_counted(imported):
    text = "question,expected,topic,level,note\n2 + 2?,4,sums,1,\n3 + 3?,6,sums,,\n"
    found = imported("csv", "x.csv", text, domain="topic")
    assert found.left_out == {"`level`": (1, "x.csv:2")}


@pytest.mark.parametrize(
    ("text", "rows", "told"),
    [
        (",question,answer\n0,Faces?,6\n", [("Faces?", "6")], {"a column without a name": (1, "x.csv:2")}),
        ("Unnamed: 0,question,answer\n0,a?,6\n", [("a?", "6")], {"`Unnamed: 0`": (1, "x.csv:2")}),
        ("question,answer,,\na?,6,,\nb?,7,,,,\n", [("a?", "6"), ("b?", "7")], {}),
        ("\n,,\nquestion,answer\n\na?,6\n , \n,,,\n", [("a?", "6")], {}),
        ("sep=,\r\nquestion,answer\r\na?,6\r\n", [("a?", "6")], {}),
        ("\ufeffquestion,answer\na?,6\n", [("a?", "6")], {}),
        (' Question ,"Expected Output"\na?,6\n', [("a?", "6")], {}),
        ("question,answer,note\na?,6\nb?,7,x\n", [("a?", "6"), ("b?", "7")], {"`note`": (1, "x.csv:3")}),
        ('question,answer\r"a\r\nb?",6\r', [("a\nb?", "6")], {}),
        (f"question,answer\n{'a' * 200_000},6\n", [("a" * 200_000, "6")], {}),
        ('question,answer\n"a ""b"", ""c""","x, ""y"""\n', [('a "b", "c"', 'x, "y"')], {}),
        ('"question","answer"\n"Say ""a, b""","x\ny"\n', [('Say "a, b"', "x\ny")], {}),
    ],
)
def test_a_table_is_read_as_programs_save_it(imported, text, rows, told):
    found = imported("csv", "x.csv", text)
    assert [(one["prompt"], one["checks"][0]["value"]) for one in found.scenarios] == rows
    assert found.left_out == told


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "question;answer\na?;6\n",
            r"x\.csv:1: 'question;answer' is separated by semicolons; save the file with",
        ),
        ("question\tanswer\na?\t6\n", r"x\.csv:1: .* is separated by tabs"),
        ("sep=;\nquestion;answer\n", r"x\.csv:1: 'sep=;' says that it is separated by semicolons"),
        (
            "gold;q\n6;a?\n",
            r"x\.csv:2: 'gold;q' is one column, separated by semicolons; save the file with commas",
        ),
        ("gold|q\n6|a?\n", r"x\.csv:2: 'gold\|q' is one column, separated by bars"),
        ("gold,q;r\n6,a?\n", r"which column is the prompt\? there are gold, q;r; name it with --prompt"),
        (
            '"question";"answer"\n"a?";"6"\n',
            r"x\.csv:1: .* is separated by semicolons; save the file with commas",
        ),
        ('"question"\t"answer"\n"a?"\t"6"\n', r"x\.csv:1: .* is separated by tabs"),
        (
            "question,answer,answer\na?,6,7\n",
            r"x\.csv:1: two columns are called 'answer'; rename or remove one",
        ),
        ("question,Answer,ANSWER\na?,6,7\n", r"x\.csv:2: the columns Answer, ANSWER differ in capitals only"),
        ("q\0u\0,a\n", r"x\.csv:1: holds a NUL character; if it is UTF-16, save the file as UTF-8"),
        ("instruction,input,output\na?,,6\n", r"x\.csv:2: is the prompt in 'instruction' or in 'input'\?"),
        (
            'question,answer\na?, "6"\n',
            r"x\.csv:2: there are spaces between a comma and a quoted cell; remove",
        ),
        (
            'question, "answer"\na?,6\n',
            r"x\.csv:1: there are spaces between a comma and a quoted cell; remove",
        ),
        ("question,answer\na?,6,7\n", r"x\.csv:2: a row must have 2 cells, not 3"),
    ],
)
def test_a_table_that_may_mean_two_things_is_refused(imported, text, message):
    with pytest.raises(ScenarioError, match=message):
        imported("csv", "x.csv", text)


def test_a_table_of_utf_16_is_named(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("question,answer\na?,6\n", encoding="utf-16")
    with pytest.raises(ScenarioError, match=r"x\.csv:1: not UTF-8 but UTF-16; save the file as UTF-8"):
        read("csv", path)


cell = st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\r"), max_size=12)


@given(
    st.lists(st.tuples(cell, cell, cell), min_size=1, max_size=5),
    st.sampled_from(
        [
            (csv.QUOTE_MINIMAL, "\r\n"),  # with another end it leaves half of the line ends without quotes
            *(
                (quoting, end)
                for quoting in (csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC)
                for end in ("\n", "\r\n", "\r")
            ),
        ]
    ),
)
def test_what_python_writes_as_a_table_is_read_back(rows, dialect):
    quoting, ends = dialect
    out = io.StringIO()
    csv.writer(out, quoting=quoting, lineterminator=ends).writerows([("prompt", "answer", "note"), *rows])
    table = csv_table(out.getvalue(), ())
    plain = [[one.replace("\r\n", "\n").replace("\r", "\n") for one in row] for row in rows]
    assert table.names == ["prompt", "answer", "note"]
    assert [cells for _, cells in table.rows] == [row for row in plain if any(map(str.strip, row))]


MESSAGE = {"role": "user", "content": "Capital of Peru?"}


@pytest.mark.parametrize(
    ("prompt", "fields"),
    [
        ([{"role": "system", "content": "Be short."}, MESSAGE], {"prompt": "Capital of Peru?"}),
        (json.dumps([MESSAGE]), {"prompt": "Capital of Peru?"}),
        ({"messages": [MESSAGE]}, {"prompt": "Capital of Peru?"}),
        (MESSAGE, {"prompt": "Capital of Peru?"}),
        (
            [MESSAGE, {"role": "assistant", "content": "Lima"}, {"role": "user", "content": "Sure?"}],
            {"turns": ["Capital of Peru?", "Sure?"]},
        ),
        ("[1, 2] is what?", {"prompt": "[1, 2] is what?"}),
        (1.50, {"prompt": "1.5"}),
        (True, {"prompt": "true"}),
    ],
)
def test_a_task_is_a_text_or_what_its_user_says(imported, prompt, fields):
    (scenario,) = imported("jsonl", "f.jsonl", json.dumps({"input": prompt, "ideal": "Lima"})).scenarios
    assert scenario == {"id": "f-1", **fields, "checks": [{"kind": "exact", "value": "Lima"}]}


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        (None, "prompts that are null"),
        ("", "prompts that are empty"),
        ("nan", "prompts that are missing (nan)"),
        ([], "prompts that are an empty list"),
        (["a", "b"], "prompts that are a list"),
        ({}, "prompts that are an empty object"),
        ({"text": "a", "n": 1}, "prompts that are an object with the keys text, n"),
        ([{"from": "human", "value": "a"}], "prompts that are a list"),
        ([{"role": "narrator", "content": "a"}], "messages without a known role"),
        ([{"role": "user", "content": None}], "messages that are no text"),
        ("[{'role': 'user', 'content': 'a'}]", "chats that are no JSON (not JSON: "),
    ],
)
def test_a_task_of_another_shape_is_left_out_with_its_row(imported, prompt, told):
    found = imported("jsonl", "f.jsonl", json.dumps({"input": prompt, "answer": "Lima"}))
    ((what, where),) = found.left_out.items()
    assert (found.scenarios, what.startswith(told), where) == ([], True, (1, "f.jsonl:1"))


@pytest.mark.parametrize(
    ("answer", "check"),
    [
        (json.dumps(["a"]), {"kind": "exact", "value": "a"}),
        (json.dumps(["a", "b.", "a"]), {"kind": "regex", "pattern": r"\A\s*(?:a|b\.)\s*\Z"}),
        ("1.0", {"kind": "exact", "value": "1.0"}),
        ("1.10", {"kind": "exact", "value": "1.10"}),
        ("1e3", {"kind": "exact", "value": "1e3"}),
        ("12345678901234567890", {"kind": "exact", "value": "12345678901234567890"}),
        ("true", {"kind": "exact", "value": "true"}),
        ('[{"role": "assistant", "content": "Lima"}]', {"kind": "exact", "value": "Lima"}),
    ],
)
@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_an_answer_is_a_text_as_it_is_written_or_any_of_a_list(imported, form, answer, check):
    text = f'{{"prompt": "p", "answer": {answer}}}'
    (scenario,) = imported("jsonl", f"f.{form}", text).scenarios
    assert scenario["checks"] == [check]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (None, "expected answers that are null"),
        ("  ", "expected answers that are empty"),
        ("NaN", "expected answers that are missing (NaN)"),
        ([], "expected answers that are an empty list"),
        ({"text": ["a"], "answer_start": [1]}, "expected answers that are an object with the keys text, an"),
        (["a", ""], "several expected answers, of which some are empty"),
        (["a", None], "several expected answers, of which some are null"),
        ([["a"]], "several expected answers, of which some are a list"),
        ([{"a": 1}], "several expected answers, of which some are an object with the keys a"),
    ],
)
def test_an_answer_that_is_none_is_left_out_with_its_row(imported, answer, told):
    text = json.dumps({"prompt": "p", "answer": answer}) + '\n{"prompt": "q", "answer": "x"}\n'
    found = imported("jsonl", "f.jsonl", text)
    ((what, where),) = found.left_out.items()
    assert (len(found.scenarios), what.startswith(told), where) == (1, True, (1, "f.jsonl:1"))


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("p,None", "the expected answer `None` is a text; leave the row out if it means no answer"),
        (
            "p,\"['a' 'b']\"",
            "an expected answer that looks like a list or object is one text; JSON lines can have several",
        ),
        ("p,“Lima”", "an expected answer in curly quotes expects these, too"),
        (
            '"[{""a"": 1}]",None',
            "the expected answer `None` is a text; leave the row out if it means no answer",
        ),
        ("<|im_start|>user p,x", "the marks of a chat template in a prompt are part of the task"),
    ],
)
def test_what_may_not_be_meant_is_carried_over_with_a_note(imported, row, told):
    found = imported("csv", "t.csv", f"prompt,answer\n{row}\n")
    assert (len(found.scenarios), found.notes) == (1, {told: (1, "t.csv:2")})
    assert list(found.report()) == [f"note, 1 time: {told} (first: t.csv:2)"]


@pytest.mark.parametrize(
    "cell",
    ["['red', 'b|u']", '["red", "b|u"]', "[\"red\",'b|u',]", '["\\u0072ed", "b|u"]', ' [ "red" , "b|u" ]'],
)
@pytest.mark.parametrize(
    ("expect", "pattern"), [("exact", r"\A\s*(?:red|b\|u)\s*\Z"), ("contains", r"red|b\|u")]
)
def test_a_cell_that_lists_texts_expects_any_of_them_and_is_told(imported, cell, expect, pattern):
    table = f'prompt,answer\np,"{cell.replace(chr(34), chr(34) * 2)}"\n'
    found = imported("csv", "t.csv", table, expect)
    assert found.scenarios[0]["checks"] == [{"kind": "regex", "pattern": pattern}]
    told = "an expected answer that is a list of texts means any of them, as in JSON lines"
    assert found.notes == {told: (1, "t.csv:2")}


@pytest.mark.parametrize(
    ("name", "cell", "expect"),
    [
        ("t.csv", "[2, 3]", "exact"),
        ("t.csv", '["a", 2]', "exact"),
        ("t.csv", "{'a': 'b'}", "exact"),
        ("t.csv", "['it\\'s']", "exact"),
        ("t.csv", "['a' 'b']", "exact"),
        ("t.csv", "['a', ['b']]", "exact"),
        ("t.csv", '["ab"]', "regex"),
        ("t.jsonl", '["a", "b"]', "exact"),
    ],
)
def test_other_lists_in_texts_are_one_text(imported, name, cell, expect):
    row = {"prompt": "p", "answer": cell}
    quoted = cell.replace('"', '""')
    text = f'prompt,answer\np,"{quoted}"\n' if name == "t.csv" else json.dumps(row) + "\n"
    (check,) = imported(name[2:], name, text, expect).scenarios[0]["checks"]
    assert cell in (check.get("value"), check.get("pattern"))


def test_a_cell_that_lists_a_text_without_letters_is_left_out(imported):
    found = imported("csv", "t.csv", 'prompt,answer\np,"[""a"", """"]"\nq,x\n')
    assert found.left_out == {"several expected answers, of which some are empty": (1, "t.csv:2")}


def test_blanks_around_an_answer_count_for_contains_and_are_told(imported):
    found = imported("csv", "t.csv", "prompt,answer\np, 6\n", "contains")
    assert list(found.notes) == ["the blanks around an expected answer must be in the answer, too"]


def test_a_table_without_rows_is_named(imported):
    assert list(imported("csv", "t.csv", "prompt,answer\n").report()) == ["not imported: t: it has no rows"]


def test_ids_and_splits_that_are_no_text_are_counted(imported):
    text = json.dumps({"prompt": "p", "answer": "x", "id": None, "part": ["train"], "topic": 7})
    found = imported("jsonl", "f.jsonl", text, id="id", split="part", domain="topic")
    assert found.scenarios[0] == {
        "id": "f-1",
        "prompt": "p",
        "checks": [{"kind": "exact", "value": "x"}],
        "domain": "7",
    }
    assert set(found.left_out) == {"ids that are null", "splits that are a list"}


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


def test_chats_and_missing_values_of_a_dataset_are_known(saved):
    rows = [
        {"prompt": [MESSAGE], "answer": ["Lima", "Lima, Peru"]},
        {"prompt": [MESSAGE], "answer": float("nan")},
        {"prompt": "p", "answer": 6.0},
    ]
    found = read_files("hf", [saved("d", rows)], columns=TableColumns(), expect=None)
    assert [one["prompt"] for one in found.scenarios] == ["Capital of Peru?", "p"]
    assert found.left_out == {"expected answers that are null": (1, "d, all, row 1")}
    assert set(found.notes) == {"whole numbers that are stored with fractions are expected with `.0`"}


def test_a_date_in_a_dataset_is_its_text(saved):
    (scenario,) = read("hf", saved("d", [{"question": "When?", "answer": date(2026, 11, 23)}]))
    assert scenario["checks"][0]["value"] == "2026-11-23"


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
    found.add("a", {"prompt": "p", "checks": [{"kind": "exact", "value": "x"}]}, "a.csv:2")
    target, n = write_scenarios(found, tmp_path / "suite", "sums", force=False)
    assert (target.name, n) == ("sums.scenarios.jsonl", 1)
    with pytest.raises(ScenarioError, match="exists; name another folder with --into, or replace it with"):
        write_scenarios(found, tmp_path / "suite", "sums", force=False)
    write_scenarios(found, tmp_path / "suite", "sums", force=True)


def test_what_would_be_no_valid_scenario_is_not_written(tmp_path):
    found = Imported()
    found.add("bad", {"prompt": "p", "checks": [{"kind": "regex", "pattern": "("}]}, "a.csv:2")
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


def test_rows_on_one_line_are_told_apart_by_their_number(imported):
    rows = [{"prompt": "p", "answer": "x"}, {"prompt": "p", "answer": "#REF!"}]
    found = imported("jsonl", "x.json", json.dumps(rows))
    assert found.left_out == {"expected answers that are missing (#REF!)": (1, "x.json:1, row 2")}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("#SPILL!", "expected answers that are missing (#SPILL!)"),
        ("#DIV/0!", "expected answers that are missing (#DIV/0!)"),
        ("#NAME?", "expected answers that are missing (#NAME?)"),
        ("Err:502", "expected answers that are missing (Err:502)"),
        ("########", "expected answers that are missing (########)"),
        ("\u200b\ufeff", "expected answers that are empty"),
        ("=SUM(A1:A3)", "an expected answer that looks like a formula of a spreadsheet is a text"),
        ('="007"', "an expected answer that looks like a formula of a spreadsheet is a text"),
        (
            "array(['6'], dtype=object)",
            "an expected answer that looks like a list or object is one text; JSON lines can have several",
        ),
    ],
)
def test_what_a_spreadsheet_could_not_compute_or_nobody_sees_is_told(imported, answer, told):
    rows = [{"prompt": "p", "answer": "x"}, {"prompt": "p", "answer": answer}]
    found = imported("jsonl", "x.json", json.dumps(rows))
    assert list(found.left_out | found.notes) == [told]


def test_a_task_that_nobody_sees_is_empty(imported):
    rows = [{"prompt": "p", "answer": "x"}, {"prompt": "\u200b\u3164", "answer": "x"}]
    assert list(imported("jsonl", "x.json", json.dumps(rows)).left_out) == ["prompts that are empty"]


@pytest.mark.parametrize("answer", ["#1", "#hashtag", "==", "=> 5", "#!", "Err"])
def test_what_only_resembles_an_error_or_a_formula_is_an_answer(imported, answer):
    found = imported("jsonl", "x.json", json.dumps([{"prompt": "p", "answer": answer}]))
    assert (len(found.scenarios), found.left_out, found.notes) == (1, {}, {})

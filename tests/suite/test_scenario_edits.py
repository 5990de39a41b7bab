"""Changes in the text of scenario files: what should change does, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.builders import make_scenario

from pytest_tfgrpo.suite.documents.yaml_text import REAL
from pytest_tfgrpo.suite.scenario_edits import CannotEditError, FileEditor
from pytest_tfgrpo.suite.scenario_files import Candidate, candidates_in
from pytest_tfgrpo.suite.suite_files import SuiteFile, suite_files

NEW = {"kind": "contains", "not": True, "value": "it's: #1"}
HOSTILE = (
    "x: [1\n- y", "*a", "&a b", "!!python/object:os.system", "# no", "{{ 7 }}", "- ", "\x1b]0;x\x07",
    "\u2028", "a\r\nb", "null", "1e3", "~", "'\"`\\", "\ufeff", "😀", "%TAG", "? x",
    "<<", "=", "\t", "no", "\x85", "@x",
)  # fmt: skip


def opened(folder: Path, name: str, text: str) -> SuiteFile:
    """Return a scenario file as a run's scenarios lead to it."""
    (folder / name).write_bytes(text.encode())
    files, refused = suite_files([make_scenario(source=f"{name}:1")], folder)
    assert refused == {}
    return files[name]


def values(file: SuiteFile, text: str) -> list[Any]:
    return [
        {**one.defaults, **one.data} for one in candidates_in(text, file.path) if isinstance(one, Candidate)
    ]


@pytest.mark.parametrize(
    ("name", "text", "changed"),
    [
        (
            "a.scenario.yaml",
            "# top\n- id: a # the first\n  prompt: |\n    many\n\n    lines\n  checks:\n  # why\n"
            "  - kind: exact\n"
            "    value: 'x'   # said so\n\n# tail\n- {id: b, prompt: q, checks: [{kind: exact, value: y}]}\n",
            "# top\n- id: a # the first\n  prompt: |\n    many\n\n    lines\n  checks:\n  # why\n"
            "  - kind: exact\n"
            "    value: 'x'   # said so\n  - kind: contains\n    not: true\n"
            "    value: 'it''s: #1'\n\n# tail\n"
            "- {id: b, prompt: q, checks: [{kind: exact, value: y}]}\n",
        ),
        (
            "b.scenario.yaml",
            "id: a\r\nprompt: p\r\nchecks: [{kind: exact, value: x}] # one\r\n",
            "id: a\r\nprompt: p\r\nchecks: [{kind: exact, value: x}, {kind: contains, not: true, "
            "value: 'it''s: #1'}] # one\r\n",
        ),
        (
            "c.scenario.yaml",
            "checks:\n- kind: exact\n  value: |\n    x\nid: a\nprompt: p",
            "checks:\n- kind: exact\n  value: |\n    x\n- kind: contains\n  not: true\n  value: 'it''s: #1'\n"
            "id: a\nprompt: p",
        ),
        (
            "f.scenario.yaml",
            "id: a\r\nchecks:\r\n- {kind: exact, value: x}\r\nprompt: p\r\n",
            "id: a\r\nchecks:\r\n- {kind: exact, value: x}\r\n- {kind: contains, not: true, "
            "value: 'it''s: #1'}\r\nprompt: p\r\n",
        ),
        (
            "d.scenario.json",
            '{"id": "a", "prompt": "p",\n "checks": [\n  {"kind": "exact", "value": "x"}\n ]}',
            '{"id": "a", "prompt": "p",\n "checks": [\n  {"kind": "exact", "value": "x"},\n'
            '  {"kind": "contains", "not": true, "value": "it\'s: #1"}\n ]}',
        ),
        (
            "e.scenarios.jsonl",
            '\n{"id":"z","prompt":"p","checks":[{"kind":"exact","value":"\u2028"}]}\n'
            '{"id":"a","prompt":"p","checks":[{"kind":"exact","value":"x"}]}',
            '\n{"id":"z","prompt":"p","checks":[{"kind":"exact","value":"\u2028"}]}\n'
            '{"id":"a","prompt":"p","checks":[{"kind":"exact","value":"x"}, '
            '{"kind": "contains", "not": true, "value": "it\'s: #1"}]}',
        ),
    ],
    ids=lambda value: value if len(str(value)) < 20 else "",
)
def test_a_check_is_added_and_the_rest_stays_as_it_is(
    tmp_path: Path, name: str, text: str, changed: str
) -> None:
    file = opened(tmp_path, name, text)
    assert (
        FileEditor(file).text(
            {
                "a": {
                    "checks": [{"kind": "exact", "value": file.written["a"].data["checks"][0]["value"]}, NEW]
                }
            },
        )
        == changed
    )


def test_a_value_changes_in_its_place(tmp_path: Path) -> None:
    text = 'id: a\nprompt: p\nchecks:\n  - {weight: 2, kind: contains, value: "42"} # the answer\n'
    file = opened(tmp_path, "a.scenario.yaml", text)
    found = FileEditor(file).text({"a": {"checks": [{"kind": "number", "value": 42, "weight": 2}]}})
    assert found == text.replace("contains", "number").replace('"42"', "42")


def test_a_check_that_loses_a_key_is_written_anew_in_its_style(tmp_path: Path) -> None:
    text = "id: a\nprompt: p\nchecks:\n  - kind: contains # why\n    values: [a, b]\n# tail\n"
    file = opened(tmp_path, "a.scenario.yaml", text)
    found = FileEditor(file).text({"a": {"checks": [{"kind": "regex", "pattern": r"\d"}]}})
    assert found == "id: a\nprompt: p\nchecks:\n  - kind: regex\n    pattern: '\\d'\n# tail\n"


def test_a_default_is_overridden_for_one_scenario_and_kept_for_the_others(tmp_path: Path) -> None:
    text = "defaults:\n  checks: [{kind: exact, value: x}]\nscenarios:\n"
    text += "- id: a\n  prompt: p # ask\n\n- id: b\n  prompt: q\n"
    file = opened(tmp_path, "a.scenario.yaml", text)
    found = FileEditor(file).text({"a": {"checks": [{"kind": "exact", "value": "z"}]}})
    assert found == text.replace("# ask\n", "# ask\n  checks: [{kind: exact, value: z}]\n")


@pytest.mark.parametrize(
    "text",
    [
        "- {id: a, prompt: p, checks: &c [{kind: exact, value: x}]}\n- {id: b, prompt: q, checks: *c}\n",
        "- id: b\n  prompt: q\n  checks:\n  - &c {kind: exact, value: x}\n"
        "- id: a\n  prompt: p\n  checks:\n  - *c\n"
        "  - {kind: exact, value: &d x}\n- {id: c, prompt: *d, checks: [{kind: exact, value: *d}]}\n",
    ],
)
def test_what_others_share_by_an_alias_is_not_changed_for_them(tmp_path: Path, text: str) -> None:
    file = opened(tmp_path, "a.scenario.yaml", text)
    checks = [{"kind": "exact", "value": "z"}] * len(file.written["a"].data["checks"])
    with pytest.raises(CannotEditError):
        FileEditor(file).text({"a": {"checks": checks}})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.scenario.yaml", "id: a\nprompt: p\nexpected: x\n"),
        ("a.scenarios.jsonl", '{"id": "a", "prompt": "p", "expected": "x"}\n'),
    ],
)
def test_what_is_written_as_expected_is_read_as_a_check_and_not_changed(
    tmp_path: Path, name: str, text: str
) -> None:
    file = opened(tmp_path, name, text)
    assert file.written["a"].data["checks"] == [{"kind": "exact", "value": "x"}]
    with pytest.raises(CannotEditError, match="written as `expected`; write `checks`"):
        FileEditor(file).text({"a": {"checks": [NEW]}})


CSV = 'id,prompt,kind,answer\r\na,"How, ""many""?\nSay it",contains,x\r\nb,q,exact,y\r\n'


def test_a_row_of_a_csv_file_takes_another_check(tmp_path: Path) -> None:
    file = opened(tmp_path, "a.scenarios.csv", CSV)
    found = FileEditor(file).text({"a": {"checks": [{"kind": "regex", "pattern": 'x,"y"'}]}})
    assert found == CSV.replace("contains,x", 'regex,"x,""y"""')


@pytest.mark.parametrize(
    "fields",
    [
        {"checks": [{"kind": "contains", "value": "x"}, NEW]},
        {"checks": [{"kind": "exact", "value": "x", "ignore_case": True}]},
        {"checks": [{"kind": "json", "value": 1}]},
        {"rubric": ["TODO"]},
    ],
)
def test_what_a_csv_file_cannot_hold_is_refused(tmp_path: Path, fields: dict[str, Any]) -> None:
    editor = FileEditor(opened(tmp_path, "a.scenarios.csv", CSV))
    with pytest.raises(CannotEditError, match="a CSV file has"):
        editor.text({"a": fields})
    assert not editor.can_hold("a", fields)
    assert editor.can_hold("a", {"checks": [{"kind": "contains", "value": "x"}]})


def test_a_csv_file_without_kinds_keeps_its_columns(tmp_path: Path) -> None:
    file = opened(tmp_path, "a.scenarios.csv", "prompt,answer\np,x\n")
    (id_,) = file.written
    with pytest.raises(CannotEditError, match="has no column 'kind'"):
        FileEditor(file).text({id_: {"checks": [{"kind": "number", "value": 1.0}]}})
    assert (
        FileEditor(file).text({id_: {"checks": [{"kind": "exact", "value": "y, z"}]}})
        == 'prompt,answer\np,"y, z"\n'
    )


def test_files_outside_the_project_or_of_another_name_are_not_read(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    text = "id: a\nprompt: p\nchecks: [{kind: exact, value: x}]\n"
    for path in (tmp_path / "a.scenario.yaml", inside / "b.txt"):
        path.write_text(text)
    (inside / "link.scenario.yaml").symlink_to(tmp_path / "a.scenario.yaml")
    sources = [
        "../a.scenario.yaml",
        f"{tmp_path}/a.scenario.yaml",
        "b.txt",
        "link.scenario.yaml",
        "gone.scenario.yaml",
    ]
    files, refused = suite_files([make_scenario(source=f"{name}:1") for name in sources], inside)
    assert files == {}
    assert set(refused) == set(sources)


texts = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(codec="utf-8"), max_size=12))
words = st.text(st.characters(codec="utf-8"), max_size=12).filter(lambda text: not REAL.fullmatch(text))


def checks(texts: st.SearchStrategy[str]) -> st.SearchStrategy[list[Any]]:
    """Return lists of checks with these texts."""
    plain = {"kind": st.just("exact"), "value": texts}
    many = {
        "kind": st.just("contains"),
        "values": st.lists(texts.filter(bool), min_size=1, max_size=3),
    }
    number = {"kind": st.just("number"), "value": st.floats(-1e9, 1e9)}
    each = st.one_of(
        st.fixed_dictionaries(plain, optional={"ignore_case": st.booleans(), "weight": st.integers(1, 9)}),
        st.fixed_dictionaries(number, optional={"abs_tol": st.floats(0, 9)}),
        st.fixed_dictionaries(many),
    )
    return st.lists(each, min_size=1, max_size=3)


WRITERS = {
    "a.scenario.yaml": lambda data: yaml.safe_dump(data, sort_keys=False, allow_unicode=True),
    "b.scenario.yaml": lambda data: yaml.safe_dump(data, default_flow_style=True, sort_keys=False),
    "c.scenario.json": lambda data: json.dumps(data, indent=2),
    "d.scenario.json": json.dumps,
    "e.scenarios.jsonl": lambda data: "".join(json.dumps(one) + "\n" for one in data),
}


@pytest.mark.parametrize("name", WRITERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=checks(words), after=checks(texts), beside=checks(words))
def test_a_changed_text_says_just_what_was_asked_for(
    tmp_path: Path, name: str, before: list[Any], after: list[Any], beside: list[Any]
) -> None:
    ids = {"first": beside, "middle": before, "last": beside}
    data = [{"id": id_, "prompt": "p", "split": "eval", "checks": value} for id_, value in ids.items()]
    file = opened(tmp_path, name, WRITERS[name](data))
    try:
        found = FileEditor(file).text({"middle": {"checks": after}})
    except CannotEditError:
        assert "|+" in file.text or "&id" in file.text
        return
    first, middle, last = values(file, file.text)
    assert values(file, found) == [first, {**middle, "checks": after}, last]
    assert found.startswith(file.text[: file.text.index("middle")])
    assert found.endswith(file.text[file.text.rindex("last") :])
    assert FileEditor(file).text({"middle": {"checks": middle["checks"]}}) == file.text


def test_a_file_of_yaml_may_end_in_yml(tmp_path: Path) -> None:
    file = opened(tmp_path, "a.scenario.yml", "id: a\nprompt: p\nchecks: [{kind: exact, value: x}] # one\n")
    text = FileEditor(file).text({"a": {"prompt": "q"}})
    assert text == "id: a\nprompt: q\nchecks: [{kind: exact, value: x}] # one\n"

"""What bad scenario files get: file, line, JSON pointer and what is wrong, for every problem."""

import json
import os

import pytest

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.scenario import build_scenario
from pytest_tfgrpo.suite.scenario_files import load_scenarios

GOOD = """\
id: a
domain: text
prompt: How many?
checks:
- kind: exact
  value: "3"
"""


def with_line(line: str) -> str:
    return GOOD + line + "\n"


def also(check: str) -> str:
    """Return the good scenario with one more check, from its kind on."""
    return f"{GOOD}- kind: {check}"


YAML = [
    # what the file holds, where it is wrong, what is said
    ("", "1: #", "holds no scenario"),
    ("# nothing\n", "1: #", "holds no scenario"),
    ("[]", "1: #", "holds no scenario"),
    ("text", "1: #", "a scenario must be an object, not 'text'"),
    ("- text\n- 7", "2: #/1", "a scenario must be an object, not 7"),
    ("id: a\nid: b", "2: #/id", "duplicate key 'id'; first on line 1"),
    (GOOD + "  value: '4'", "7: #/checks/0/value", "duplicate key 'value'; first on line 6"),
    ("a: [", "2: #", "not YAML: did not find expected node content"),
    ("a: b: c", "1: #", "not YAML: mapping values are not allowed in this context"),
    ("a:\n\tb: 2", "2: #", "not YAML: found character that cannot start any token"),
    ("a: 1\nb: \x07", "2: #", "not YAML: character U+0007; escape it"),
    (
        "a: !!python/object/apply:os.system [x]",
        "1: #",
        "tag 'tag:yaml.org,2002:python/object/apply:os.system'",
    ),
    ("a: !x y", "1: #", "tag '!x' is not supported"),
    ("--- a\n--- b", "2: #", "a second document; write one list instead"),
    ("a: *x", "1: #", "alias 'x' refers to no anchor before it"),
    ("a: &x [*x]", "1: #", "alias 'x' refers to no anchor before it"),
    ("1: x", "1: #", "key 1 is not a string; quote it"),
    ("a: {null: x}", "1: #/a", "key None is not a string; quote it"),
    ("? [a]\n: b", "1: #", "a key must be a string"),
    ("a: 1e999", "1: #/a", "'1e999' is not a finite number; quote it"),
    ("[" * 70, "1: #" + "/0" * 64, "nested more than 64 levels deep"),
    ('a: "\\ud800"', "1: #", "not YAML: "),
    (
        GOOD.replace("a\n", "a b\n", 1),
        "1: #/id",
        "'a b' does not match: 1 to 128 letters, digits, '.', '_' and '-'",
    ),
    (GOOD.replace("id: a", "id: .."), "1: #/id", "'..' does not match"),
    (GOOD.replace("id: a", 'id: "a\\n"'), "1: #/id", "'a\\n' does not match"),
    (GOOD.replace("id: a", "id: ../a"), "1: #/id", "'../a' does not match"),
    (GOOD.replace("id: a", "id: 7"), "1: #/id", "7 is not of type string; quote it"),
    (GOOD.replace("id: a", "id: a" + "b" * 128), "1: #/id", "does not match"),
    (GOOD.replace("id: a\n", ""), "1: #", "missing key 'id'"),
    (GOOD.replace("text", "text/x"), "2: #/domain", "'text/x' does not match: 1 to 64 letters"),
    (GOOD.replace("text", "tfgrpo.optimizer"), "2: #/domain", "tfgrpo.* is reserved"),
    (GOOD.replace("prompt", "promt"), "3: #/promt", "unknown key 'promt'; did you mean 'prompt'?"),
    (GOOD.replace("prompt", "promt"), "1: #", "needs at least one of 'prompt', 'input'"),
    (GOOD.replace("How many?", "'  '"), "1: #", "needs at least one of 'prompt', 'input'"),
    (with_line("input:"), "7: #/input", "None is not of type object or array"),
    (with_line("split: test"), "7: #/split", "'test' is not one of ['train', 'dev', 'eval']"),
    (with_line("min_score: 1.5"), "7: #/min_score", "1.5 is greater than the maximum of 1"),
    (with_line("min_score: .nan"), "7: #/min_score", "'.nan' is not of type number"),
    (with_line("timeout_s: 0"), "7: #/timeout_s", "0 is less than or equal to the minimum of 0"),
    (with_line("timeout_s: 1:30"), "7: #/timeout_s", "'1:30' is not of type number"),
    (with_line("tools: count"), "7: #/tools", "'count' is not of type array; write [\"count\"]"),
    (with_line("tools: [a, a]"), "7: #/tools", "['a', 'a'] has non-unique elements"),
    (with_line("tags: [a, b c]"), "7: #/tags/1", "'b c' does not match"),
    (with_line("zeal: 1"), "7: #/zeal", "unknown key 'zeal'"),
    (with_line("target: x"), "7: #/target", "unknown key 'target'; did you mean 'expected'?"),
    (with_line("Question: x"), "7: #/Question", "unknown key 'Question'; did you mean 'prompt'?"),
    (
        with_line("expected: [a, b]"),
        "7: #/expected",
        "of type string or number; for a JSON value write checks",
    ),
    (with_line("attachments: [../a.csv]"), "7: #/attachments/0", "'../a.csv' must be a plain relative path"),
    (
        with_line("attachments: [/etc/passwd]"),
        "7: #/attachments/0",
        "'/etc/passwd' must be a plain relative path",
    ),
    (with_line("attachments: [a/../../b]"), "7: #/attachments/0", "must be a plain relative path"),
    (with_line("attachments: ['a\\b']"), "7: #/attachments/0", "must be a plain relative path"),
    (
        with_line("attachments: [here, none.csv]"),
        "7: #/attachments/1",
        "'none.csv' cannot be read: No such file",
    ),
    (with_line("attachments: [out]"), "7: #/attachments/0", "'out' is a link that leaves its folder"),
    (with_line("attachments: [loop]"), "7: #/attachments/0", "'loop' cannot be read"),
    (with_line("attachments: [pipe]"), "7: #/attachments/0", "'pipe' is not a regular file"),
    (with_line("attachments: [folder]"), "7: #/attachments/0", "'folder' is not a regular file"),
    (with_line("attachments: [huge]"), "7: #/attachments/0", "'huge' has 10000001 bytes, more than 10000000"),
    (GOOD.split("checks")[0], "1: #", "missing key 'checks'"),
    (GOOD.split("checks")[0] + "checks: []", "4: #/checks", "[] should be non-empty"),
    (GOOD.split("checks")[0] + "checks: [exact]", "4: #/checks/0", "'exact' is not of type object"),
    (GOOD.split("checks")[0] + "checks:\n- value: x", "5: #/checks/0", "missing key 'kind'"),
    (GOOD.split("checks")[0] + "checks:\n- equals: x", "5: #/checks/0/equals", "write kind: exact, and its"),
    (GOOD.split("checks")[0] + "checks:\n- regex: x", "5: #/checks/0/regex", "write kind: regex, and its"),
    (GOOD.replace("exact", "equals"), "5: #/checks/0/kind", "check kind 'equals'; did you mean 'exact'?"),
    (GOOD.replace("exact", "exat"), "5: #/checks/0/kind", "unknown check kind 'exat'; did you mean 'exact'?"),
    (
        GOOD.replace("exact", "zzz"),
        "5: #/checks/0/kind",
        "unknown check kind 'zzz'; known are exact, contains,",
    ),
    (GOOD.replace('"3"', "3"), "6: #/checks/0/value", "3 is not of type string; quote it"),
    (GOOD + "  weight: 0", "7: #/checks/0/weight", "0 is less than or equal to the minimum of 0"),
    (GOOD + "  weight: heavy", "7: #/checks/0/weight", "'heavy' is not of type number"),
    (GOOD + "  strp: true", "7: #/checks/0/strp", "unknown key 'strp'; did you mean 'strip'?"),
    (GOOD + "  strip: yes", "7: #/checks/0/strip", "'yes' is not of type boolean; write true or false"),
    (also("contains"), "7: #/checks/1", "needs exactly one of 'value', 'values'"),
    (also("contains\n  value: a\n  values: [b]"), "7: #/checks/1", "needs exactly one of"),
    (also("regex\n  pattern: '('"), "8: #/checks/1/pattern", "'(' is not a regular expression: missing )"),
    (also("regex\n  pattern: a\n  flags: q"), "9: #/checks/1/flags", "'q' does not match: letters out of"),
    (also("number\n  value: '7'"), "8: #/checks/1/value", "'7' is not of type number"),
    (also("number\n  value: 7\n  abs_tol: -1"), "9: #/checks/1/abs_tol", "-1 is less than the minimum"),
    (also("json"), "7: #/checks/1", "missing key 'value'"),
    (also("json_schema\n  schema: {type: x}"), "8: #/checks/1/schema", "is not a schema that can be used"),
    (also("json_schema\n  schema: {$ref: 'http://x'}"), "8: #/checks/1/schema", "points outside the schema"),
    (also("tool_calls\n  calls: [{nme: x}]"), "8: #/checks/1/calls/0/nme", "did you mean 'name'?"),
    (also("tool_calls\n  calls: []\n  order: any"), "9: #/checks/1/order", "'any' is not one of"),
    (also("file\n  path: a"), "7: #/checks/1", "needs exactly one of 'golden', 'pattern', 'contains'"),
    (also("file\n  path: ../a\n  contains: x"), "8: #/checks/1/path", "must be a plain relative path"),
    (also("file\n  path: a\n  golden: ../b"), "9: #/checks/1/golden", "must be a plain relative path"),
    (also("file\n  path: a\n  golden: none"), "9: #/checks/1/golden", "cannot be read: No such file"),
    (also("file\n  path: a\n  golden: out"), "9: #/checks/1/golden", "leaves its folder"),
    (also("file\n  path: a\n  pattern: '['"), "9: #/checks/1/pattern", "is not a regular expression"),
    (also("command\n  run: 'a \"b'"), "8: #/checks/1/run", "cannot be split into arguments: No closing"),
    (also("command\n  run: '#'\n  exit_code: 256"), "9: #/checks/1/exit_code", "256 is greater than"),
    (also("command\n  run: []"), "8: #/checks/1/run", "[] should be non-empty"),
    (also("command\n  run: ' '"), "8: #/checks/1/run", "' ' names no program"),
    (also("python\n  target: os.system"), "8: #/checks/1/target", "does not match: written as module"),
    (also("python\n  target: nowhere_at_all:f"), "8: #/checks/1/target", "pytest's pythonpath?"),
    (also("python\n  target: json:nope"), "8: #/checks/1/target", "has no attribute 'nope'"),
    (also("python\n  target: json:__doc__"), "8: #/checks/1/target", "is not a plain callable"),
    ("defaults: 1\nscenarios: []", "1: #/defaults", "defaults must be an object, not 1"),
    ("defaults: {id: a}\nscenarios: []", "1: #/defaults/id", "an id cannot be a default"),
    ("scenarios: {}", "1: #/scenarios", "scenarios must be a list, not {}"),
    ("scenario: x\ndefaults: {}", "1: #/scenario", "unknown key 'scenario'; did you mean 'scenarios'?"),
    ("defaults:\n  domian: x\nscenarios:\n- {}", "2: #/defaults/domian", "did you mean 'domain'?"),
    ("scenarios:\n- id: a\n  split: x", "3: #/scenarios/0/split", "'x' is not one of"),
]


@pytest.fixture
def _files(tmp_path):
    (tmp_path / "here").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "out").symlink_to("/etc/hostname")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(10_000_001)


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize(("text", "where", "message"), YAML)
def test_a_bad_yaml_file_is_refused_with_file_line_and_pointer(refusal, text, where, message):
    lines = refusal("bad.scenario.yaml", text)
    start = f"bad.scenario.yaml:{where}: "
    assert [line for line in lines if line.startswith(start) and message in line], lines
    assert all(line.startswith("bad.scenario.yaml:") for line in lines)


SCENARIO = {"id": "a", "prompt": "p", "checks": [{"kind": "exact", "value": "3"}]}
JSON = [
    ("", "1: #", "not JSON: Expecting value, column 1"),
    ("{\n'a': 1}", "2: #", "not JSON: Expecting property name"),
    ('{"a": 1,\n"a": 2}', "2: #/a", "duplicate key 'a'; first on line 1"),
    ('{"a": {"b": 1,\n\n"b": 2}}', "3: #/a/b", "duplicate key 'b'; first on line 1"),
    ('{"a":\n[1, NaN]}', "2: #/a/1", "'NaN' is not a finite number"),
    ('{"a": -Infinity}', "1: #/a", "'-Infinity' is not a finite number"),
    ('{"a":\n1e400}', "2: #/a", "'1e400' is not a finite number"),
    ('{"a": ["\\ud800"]}', "1: #/a/0", "'\\ud800' holds half a surrogate pair"),
    ('{"\\udfff": 1}', "1: #", "'\\udfff' holds half a surrogate pair"),
    ('{"a": ' + "9" * 5000 + "}", "1: #", "not JSON: Exceeds the limit"),
    ("[" * 100_000, "1: #", "nested more than 64 levels deep"),
    ("[" * 65 + "]" * 65, "1: #" + "/0" * 64, "nested more than 64 levels deep"),
    ('{"a": 1} x', "1: #", "not JSON: Extra data"),
    (json.dumps(SCENARIO | {"split": 1}, indent=1), "10: #/split", "1 is not one of"),
    (json.dumps({"checks": [{"kind": "exact"}]}, indent=1), "3: #/checks/0", "missing key 'value'"),
    (json.dumps([SCENARIO] * 2, indent=1), "13: #/1/id", "duplicate id 'a'; first at bad.scenario.json:2"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "where", "message"), JSON)
def test_a_bad_json_file_is_refused_with_file_line_and_pointer(refusal, text, where, message):
    lines = refusal("bad.scenario.json", text)
    assert any(line.startswith(f"bad.scenario.json:{where}: ") and message in line for line in lines), lines


GOOD_LINE = json.dumps(SCENARIO)
JSONL = [
    ("\n \n", "1: #", "holds no scenario"),
    (GOOD_LINE + "\n{", "2: #", "not JSON: Expecting property name"),
    (GOOD_LINE + "\n\n" + GOOD_LINE, "3: #/id", "duplicate id 'a'; first at bad.scenarios.jsonl:1"),
    (GOOD_LINE + '\n{"id": "b", "id": "c"}', "2: #/id", "duplicate key 'id'"),
    (GOOD_LINE + '\n{"id": NaN}', "2: #/id", "'NaN' is not a finite number"),
    (GOOD_LINE + '\n{"id": 1e999}', "2: #/id", "'1e999' is not a finite number"),
    (GOOD_LINE + '\n{"id": "\\ud800"}', "2: #/id", "half a surrogate pair"),
    (GOOD_LINE + "\n[" + GOOD_LINE + "]", "2: #", "a scenario must be an object, not [{"),
    (GOOD_LINE + "\n" + GOOD_LINE.replace("prompt", "prmpt"), "2: #/prmpt", "did you mean 'prompt'?"),
    ("[" * 100_000, "1: #", "nested more than 64 levels deep"),
    ('{"input": ' + "[" * 64 + "]" * 64 + "}", "1: #/input" + "/0" * 63, "nested more than 64 levels deep"),
]


@pytest.mark.parametrize(("text", "where", "message"), JSONL)
def test_a_bad_jsonl_file_is_refused_with_file_line_and_pointer(refusal, text, where, message):
    lines = refusal("bad.scenarios.jsonl", text)
    assert any(line.startswith(f"bad.scenarios.jsonl:{where}: ") and message in line for line in lines), lines


CSV = [
    ("", "1: #", "no column 'prompt'; the first line names the columns prompt, answer"),
    ("prompt,answr\n", "1: #/answr", "unknown column 'answr'; did you mean 'answer'?"),
    ("prompt,answer,prompt\n", "1: #/prompt", "duplicate column 'prompt'"),
    ("prompt,answer\n", "1: #", "holds no scenario"),
    ("prompt,answer\np,3\nq,3,4\n", "3: #", "3 cells in a table of 2 columns"),
    ("prompt,answer\np\n", "2: #", "1 cells in a table of 2 columns"),
    ("prompt,answer\np,\n", "2: #/answer", "an answer is missing"),
    ("prompt,answer\n,3\n", "2: #", "needs at least one of 'prompt', 'input'"),
    ("prompt,answer,kind\np,three,number\n", "2: #/answer", "'three' is not a number"),
    ("prompt,answer,kind\np,nan,number\n", "2: #/answer", "'nan' is not a number"),
    (
        "prompt,answer,kind\np,3,file\n",
        "2: #/kind",
        "kind 'file' must be one of exact, contains, number, math, regex",
    ),
    ("prompt,answer,kind\np,(,regex\n", "2: #/checks/0/pattern", "is not a regular expression"),
    ("prompt,answer,split\np,3,both\n", "2: #/split", "'both' is not one of"),
    ("prompt,answer,min_score\np,3,high\n", "2: #/min_score", "'high' is not a number"),
    ("prompt,answer,min_score\np,3,1.5\n", "2: #/min_score", "1.5 is greater than the maximum of 1"),
    ('prompt,answer\n"two\nlines",3\nx,\n', "4: #/answer", "an answer is missing"),
    ('prompt,answer\n"x"y,3\n', "2: #", "not CSV: "),
    ('prompt,answer\n"x,3\n', "2: #", "not CSV: unexpected end of data"),
    ("id,prompt,answer,\na,p,3,0\n", "2: #", "'0' is in a column without a name; name or remove it"),
    ("sep=;\nprompt;answer\n", "1: #", "'sep=;' says that it is separated by semicolons"),
    ("prompt,answer,id\np,3,a\nq,4,a\n", "3: #/id", "duplicate id 'a'; first at bad.scenarios.csv:2"),
]


@pytest.mark.parametrize(("text", "where", "message"), CSV)
def test_a_bad_csv_file_is_refused_with_file_line_and_pointer(refusal, text, where, message):
    lines = refusal("bad.scenarios.csv", text)
    assert any(line.startswith(f"bad.scenarios.csv:{where}: ") and message in line for line in lines), lines


def test_bytes_that_are_not_utf_8_are_named_with_their_line(refusal):
    assert refusal("x.scenario.yaml", b"id: a\nprompt: \xff") == [
        "x.scenario.yaml:2: #: not UTF-8: byte 0xff; save the file as UTF-8"
    ]
    assert "x.scenario.json:1: #: not UTF-8" in refusal("x.scenario.json", "{}".encode("utf-16"))[0]


def test_all_problems_of_a_file_are_told_at_once_and_at_most_twenty(refusal):
    lines = refusal("x.scenarios.jsonl", "\n".join(['{"id": "a"}', "nonsense", '{"id": 7, "checks": 1}']))
    assert {line.split(":")[1] for line in lines} == {"1", "2", "3", " the same on line 3"}
    lines = refusal("x.scenarios.jsonl", "\n".join(f'{{"id": "{n}", "x{n}": 1}}' for n in range(1000)))
    assert sum("unknown key" in line for line in lines) in (6, 7)
    assert lines[-1] == "x.scenarios.jsonl: there may be more; fix these first"


def test_what_many_scenarios_have_in_common_is_said_once(refusal):
    rows = "".join(f"How many is {n}?,3,numbr\n" for n in range(12))
    first, more = refusal("x.scenarios.csv", "prompt,answer,kind\n" + rows)
    assert first.startswith("x.scenarios.csv:2: #/kind: kind 'numbr' must be one of ")
    assert first.endswith("; did you mean 'number'?")
    assert more == f"x.scenarios.csv: the same on lines {', '.join(map(str, range(3, 14)))}"


@pytest.mark.parametrize(("mark", "name"), [(";", "semicolons"), ("\t", "tabs")])
def test_a_table_of_another_separator_is_told_so(refusal, mark, name):
    (line,) = refusal("x.scenarios.csv", f"id{mark}prompt{mark}answer\na{mark}How many?{mark}3\n")
    assert line.startswith("x.scenarios.csv:1: #: ")
    assert line.endswith(f" is separated by {name}; save the file with commas")


def test_a_bad_default_is_told_once(refusal):
    text = "defaults: {split: x}\nscenarios:\n" + "".join(
        f"- {{id: a{i}, prompt: p, checks: [{{kind: exact, value: x}}]}}\n" for i in range(5)
    )
    assert refusal("x.scenario.yaml", text) == [
        "x.scenario.yaml:1: #/defaults/split: 'x' is not one of ['train', 'dev', 'eval']"
    ]


def test_aliases_cannot_stand_for_billions_of_values(refusal):
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    assert "holds more than 1000000 values" in refusal("x.scenario.yaml", "\n".join(levels))[0]


def test_aliases_cannot_nest_more_deeply_than_values(refusal):
    levels = ["- &a0 [x]", *(f"- &a{i} [*a{i - 1}]" for i in range(1, 100))]
    assert "nested more than 64 levels deep" in refusal("x.scenario.yaml", "\n".join(levels))[0]


def test_a_file_that_cannot_be_read_is_a_scenario_error(tmp_path):
    with pytest.raises(ScenarioError, match=r"^gone\.scenario\.yaml:1: #: cannot be read: No such file"):
        load_scenarios(tmp_path / "gone.scenario.yaml", root=tmp_path, kinds=KINDS)


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    with (tmp_path / "x.scenarios.json").open("wb") as file:
        file.truncate(256_000_001)
    with pytest.raises(ScenarioError, match="larger than 256000000 bytes; split the file"):
        load_scenarios(tmp_path / "x.scenarios.json", root=tmp_path, kinds=KINDS)


def test_a_file_with_another_name_is_no_scenario_file(refusal):
    assert "the name of a scenario file ends in one of .scenario.yaml" in refusal("x.yaml", "id: a")[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prompt": {"a"}}, "#/prompt: JSON cannot hold the value: "),
        ({"input": float("nan")}, "#/input: JSON cannot hold the value: "),
        ({"id": "a b"}, "#/id: 'a b' does not match"),
        ({"splt": "train"}, "#/splt: unknown key 'splt'; did you mean 'split'?"),
        ({"checks": [{"kind": "exat"}]}, "#/checks/0/kind: unknown check kind 'exat'"),
        ({"attachments": ["none"]}, "#/attachments/0: 'none' cannot be read"),
    ],
)
def test_a_bad_mark_is_refused_with_its_source_and_pointer(tmp_path, changes, message):
    with pytest.raises(ScenarioError) as error:
        build_scenario(
            {"id": "a", "prompt": "p"} | changes, source="tests/test_x.py:3", checker="x", folder=tmp_path
        )
    assert str(error.value).startswith("tests/test_x.py:3: " + message)


@pytest.mark.parametrize("sign", ["", "-"])
def test_a_weight_that_no_float_can_hold_is_refused_by_its_pointer(tmp_path, sign):
    weight = sign + "1" + "0" * 400
    check = f'{{"kind": "exact", "value": "3", "weight": {weight}}}'
    (tmp_path / "x.scenario.json").write_text(
        f'{{"id": "a", "domain": "d", "prompt": "p", "checks": [{check}]}}'
    )
    with pytest.raises(ScenarioError, match=r"x\.scenario\.json:1: #/checks/0/weight: "):
        load_scenarios(tmp_path / "x.scenario.json", root=tmp_path, kinds=KINDS)


def test_the_answers_of_a_json_check_may_have_any_number_of_digits(tmp_path):
    value = "1" + "0" * 400
    (tmp_path / "x.scenario.json").write_text(
        f'{{"id": "a", "domain": "d", "prompt": "p", "checks": [{{"kind": "json", "value": {value}}}]}}'
    )
    (scenario,) = load_scenarios(tmp_path / "x.scenario.json", root=tmp_path, kinds=KINDS)
    (check,) = scenario.checks
    assert value in KINDS["json"].answers(check)

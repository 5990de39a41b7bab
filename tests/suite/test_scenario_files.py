"""Scenario files: what the fields mean, and what text is left as it is."""

import csv
import io
import json
from itertools import product
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.builders import make_scenario
from support.reached import reached, reaches
from support.suite.scenario_files import EXACT, PLAIN, checks

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.scenarios import Attachment, Check, WorkspaceArchive, task_key
from pytest_tfgrpo.core.wire.schema import LIMIT, load_schema, violations
from pytest_tfgrpo.core.wire.schema_accepts import accepts
from pytest_tfgrpo.core.wire.stamp import stamp, stamp_bytes
from pytest_tfgrpo.scoring.checks.protocol import CheckKind
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.documents.document import Refused
from pytest_tfgrpo.suite.documents.json_text import parse_json, parse_json_line
from pytest_tfgrpo.suite.documents.yaml_text import parse_yaml
from pytest_tfgrpo.suite.scenario import build_scenario, split_of
from pytest_tfgrpo.suite.scenario_files import Suite, load_scenarios


def test_every_field_arrives_in_the_record(load, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "t.csv").write_bytes(b"1\n")
    text = """
# a comment
id: count-words
domain: text
split: eval
prompt: How many?
input: {n: 1, list: [no, 2026-01-02]}
attachments: [data/t.csv]
tools: [count]
checks:
- {kind: exact, value: "3", weight: 2}
- {kind: contains, value: x}
min_score: 0.5
tags: [quick]
timeout_s: 3
family: counting
"""
    (scenario,) = load("x.scenario.yaml", text)
    assert scenario == make_scenario(
        split="eval",
        prompt="How many?",
        input={"n": 1, "list": ["no", "2026-01-02"]},
        attachments=(
            Attachment(name="data/t.csv", path=tmp_path / "data" / "t.csv", sha256=stamp_bytes(b"1\n")),
        ),
        tools=("count",),
        checks=(
            Check(kind="exact", weight=2, params={"value": "3"}),
            Check(kind="contains", params={"value": "x"}),
        ),
        min_score=0.5,
        tags=("quick",),
        timeout_s=3,
        family="counting",
        source="x.scenario.yaml:3",
        stamp=scenario.stamp,
    )


def test_what_is_left_out_takes_its_default(load):
    (scenario,) = load("x.scenario.json", json.dumps(PLAIN | {"split": "train"}))
    expected = make_scenario(
        "a", domain="general", prompt="p", source="x.scenario.json:1", stamp=scenario.stamp
    )
    assert scenario == expected


def test_a_prompt_may_be_left_out_or_blank_where_there_is_input(load):
    for more in ({}, {"prompt": ""}):
        (scenario,) = load("x.scenario.json", json.dumps({"id": "a", "input": [1], "checks": [EXACT]} | more))
        assert (scenario.prompt, scenario.input) == ("", [1])


@pytest.mark.parametrize(
    ("name", "text", "sources"),
    [
        ("x.scenario.yaml", yaml.safe_dump(PLAIN), [1]),
        ("x.scenario.yaml", "\n" + yaml.safe_dump([PLAIN, PLAIN | {"id": "b"}]), [2, 7]),
        ("x.scenario.yaml", yaml.safe_dump({"scenarios": [PLAIN, PLAIN | {"id": "b"}]}), [2, 7]),
        ("x.scenario.json", json.dumps([PLAIN, PLAIN | {"id": "b"}], indent=1), [2, 12]),
        ("x.scenario.json", json.dumps({"defaults": {}, "scenarios": [PLAIN]}, indent=1), [4]),
        ("x.scenarios.jsonl", f"{json.dumps(PLAIN)}\r\n\n{json.dumps(PLAIN | {'id': 'b'})}", [1, 3]),
        ("x.scenarios.csv", 'prompt,answer\r\np,3\r\n\r\n"q\nr",4\r\n', [2, 4]),
    ],
)
def test_a_source_is_the_line_on_which_the_scenario_starts(load, name, text, sources):
    assert [scenario.source for scenario in load(name, text)] == [f"{name}:{line}" for line in sources]


def test_scenarios_take_defaults_for_fields_they_do_not_set(load):
    text = """
defaults: {domain: text, split: train, tools: [a]}
scenarios:
- {id: a, prompt: p, checks: [{kind: exact, value: x}]}
- {id: b, prompt: q, split: eval, checks: [{kind: exact, value: x}]}
"""
    assert [(s.id, s.domain, s.split, s.tools) for s in load("x.scenario.yaml", text)] == [
        ("a", "text", "train", ("a",)),
        ("b", "text", "eval", ("a",)),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "no", "NO", "yes", "on", "off", "y", "n", "2026-01-02", "2026-01-02T03:04:05Z", "12:30:45", "1:30",
        "0o17", "017", "007", "0x1F", "0b1", "1_000", ".inf", "-.Inf", ".nan", "<<", "=", "1,5", "+", "tRue",
        "None",
    ],
)  # fmt: skip
def test_yaml_converts_nothing_behind_the_authors_back(text):
    assert parse_yaml(f"a: {text}").value == {"a": text}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True), ("False", False), ("null", None), ("~", None), ("", None), ("0", 0), ("-12", -12),
        ("1.50", 1.5), (".5", 0.5), ("1e3", 1000.0), ("1.0e-06", 1e-6), ("'true'", "true"), ('"1"', "1"),
        ("|\n  no", "no"), ("123456789012345678901234567890", 123456789012345678901234567890),
    ],
)  # fmt: skip
def test_yaml_reads_null_booleans_and_decimal_numbers(text, value):
    found = parse_yaml(f"a: {text}").value["a"]
    assert found == value
    assert type(found) is type(value)


def test_a_yaml_alias_stands_for_the_value_it_names():
    assert parse_yaml("a: &x {b: [1]}\nc: *x").value == {"a": {"b": [1]}, "c": {"b": [1]}}


def test_yaml_reads_the_same_without_the_c_parser(monkeypatch):
    texts = ["a: [1, {b: no}]\n", "a: 1\na: 2", "a: [", "a: !x y", "a: \x07", '"\\UFFFFFFFF"', "- &x 1\n- *x"]

    def outcome(text):
        try:
            return parse_yaml(text).value
        except Refused as error:
            return error.problem.line

    fast = [outcome(text) for text in texts]
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    assert [outcome(text) for text in texts] == [*fast[:2], 1, *fast[3:]]


texts = st.text(max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda v: st.lists(v, max_size=4) | st.dictionaries(texts, v, max_size=4),
    max_leaves=12,
)


@given(json_values, st.sampled_from([None, 1]), st.booleans())
def test_json_is_read_as_the_standard_library_reads_it(value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert parse_json(text).value == value
    assert parse_json_line(json.dumps(value, ensure_ascii=ascii_only), 1) == value


@st.composite
def spoilt(draw):
    """Draw JSON in which some characters are others."""
    letters = list(json.dumps(draw(json_values)))
    for _ in range(draw(st.integers(0, 2))):
        letters[draw(st.integers(0, len(letters) - 1))] = draw(st.sampled_from('{}[]",:\\ \n1e-+.tnaIfu0/'))
    return "".join(letters)


@reaches("read", "refused")
@given(
    st.text(alphabet='{}[]",:\\ \n1e-+.tnaIfu0/', max_size=20) | st.text(max_size=10) | spoilt() | spoilt()
)
def test_hostile_json_is_refused_or_read_as_the_standard_library_reads_it(text):
    for parse in (lambda: parse_json(text).value, lambda: parse_json_line(text, 1)):
        try:
            value = parse()
        except Refused:
            reached("refused")
            continue
        reached("read")
        assert value == json.loads(text)


printable = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=8)
printable_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | printable,
    lambda v: st.lists(v, max_size=4) | st.dictionaries(printable, v, max_size=4),
    max_leaves=12,
)


@given(printable_values, st.sampled_from([None, 2]))
def test_json_of_printable_text_means_the_same_as_yaml(value, indent):
    assert parse_yaml(json.dumps(value, ensure_ascii=False, indent=indent)).value == value


odd = st.text(max_size=60) | st.text(alphabet="a:- \n[]{}&*!|>'\"#%@`,?0\t", max_size=30)
plain = st.lists(st.sampled_from(["a: 1", "b: [1, x]", "- a", "- b: 2", "  c: 3", "# x"]), min_size=1)


@reaches("a mapping or list", "a scalar", "refused")
@given(odd | plain.map("\n".join))
@settings(max_examples=300)
def test_hostile_yaml_is_refused_with_a_line_or_read_as_json_values(text):
    try:
        value = parse_yaml(text).value
    except Refused:
        reached("refused")
        return
    reached("a mapping or list" if isinstance(value, dict | list) else "a scalar")
    assert json.loads(json.dumps(value)) == value


def test_a_line_is_known_for_every_part_of_a_document():
    text = '{\n "a": [\n  1,\n  {"b":\n   2}\n ]\n}'
    lines = {(): 1, ("a",): 2, ("a", 0): 3, ("a", 1): 4, ("a", 1, "b"): 4}
    assert dict(parse_json(text).lines) == lines
    assert dict(parse_yaml(text).lines) == lines


# -- CSV


cells = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).filter(str.strip)


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_csv_reads_back_the_prompts_and_answers_written(load, rows):
    out = io.StringIO()
    csv.writer(out).writerows([("prompt", "answer"), *rows])
    scenarios = load("set.scenarios.csv", out.getvalue())
    assert [(s.prompt, s.checks[0].params["value"]) for s in scenarios] == rows
    assert [s.id for s in scenarios] == [f"set-{n}" for n in range(1, len(rows) + 1)]


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffPrompt , ANSWER,,\r\n\r\np,3,,\r\n,,,\r\n",
        "sep=,\nprompt,answer\np,3\n , \n",
        "prompt,answer,tags,family\np,3\n",
    ],
)
def test_a_csv_file_is_read_as_programs_save_it(load, text):
    (scenario,) = load("x.scenarios.csv", text)
    assert (scenario.id, scenario.prompt, scenario.checks[0].params) == ("x-1", "p", {"value": "3"})


def test_a_cell_of_a_csv_file_may_be_long_and_its_line_ends_are_newlines(load):
    (scenario,) = load("x.scenarios.csv", f'prompt,answer\r\n"{"x" * 140_000}\r\ny",3\r\n')
    assert scenario.prompt == "x" * 140_000 + "\ny"


def test_csv_columns_fill_the_fields_of_their_names(load):
    text = (
        "id,prompt,answer,domain,split,family,kind,tags,min_score,agents\n"
        "a,p,3.50,text,eval,f,number,x y,0.5,small gpt-x\n"
        "b,q,3.50,,train,,,,,\n"
        "c,r,^3,,train,,regex,,,\n"
    )
    a, b, c = load("x.scenarios.csv", text)
    assert (a.domain, a.split, a.family, a.tags) == ("text", "eval", "f", ("x", "y"))
    assert a.checks == (Check(kind="number", params={"value": 3.5}),)
    assert (a.min_score, b.min_score) == (0.5, None)
    assert (a.agents, b.agents) == (("small", "gpt-x"), ())
    assert (b.domain, b.tags, b.family) == ("general", (), None)
    assert b.checks == (Check(kind="exact", params={"value": "3.50"}),)
    assert c.checks == (Check(kind="regex", params={"pattern": "^3"}),)


def test_a_byte_order_mark_is_tolerated(load):
    for name, text in [
        ("x.scenarios.csv", "prompt,answer\np,3\n"),
        ("x.scenarios.jsonl", json.dumps(PLAIN)),
        ("x.scenario.yaml", yaml.safe_dump(PLAIN)),
        ("x.scenario.json", json.dumps(PLAIN)),
    ]:
        assert load(name, b"\xef\xbb\xbf" + text.encode())[0].prompt == "p"


def test_line_ends_inside_a_json_text_do_not_end_a_line_of_jsonl(load):
    (scenario,) = load(
        "x.scenarios.jsonl", json.dumps(PLAIN | {"prompt": "a\u2028b\x85c"}, ensure_ascii=False)
    )
    assert scenario.prompt == "a\u2028b\x85c"


# -- splits, stamps, suites


def test_the_split_by_hash_is_the_same_for_ever():
    assert [n for n in range(12) if split_of(f"family-{n}") == "eval"] == [3, 7, 9]


def test_about_three_families_in_ten_are_eval():
    share = sum(split_of(f"f{n}") == "eval" for n in range(5000)) / 5000
    assert 0.28 < share < 0.32


@given(
    st.text(min_size=1, max_size=20),
    st.lists(st.from_regex(r"[a-z0-9]{1,9}", fullmatch=True), min_size=2, max_size=4),
)
def test_scenarios_of_a_family_stay_on_one_side(family, ids):
    built = [build({"id": id_, "prompt": "p", "family": family}) for id_ in ids]
    assert len({scenario.split for scenario in built}) == 1


def build(data, folder=None, checker="test_x", **more):
    return build_scenario(data, source="x:1", checker=checker, folder=folder or Path(), **more)


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt": "q"}, {"input": 0}, {"input": {}}, {"tools": []}, {"tools": ["a"]},
        {"checks": [EXACT, EXACT]}, {"checks": [EXACT | {"value": "4"}]}, {"checks": [EXACT | {"weight": 2}]},
        {"checks": [EXACT | {"not": True}]},
        {"attachments": ["one"]}, {"attachments": ["two"]},
    ],
)  # fmt: skip
def test_the_task_stamp_covers_what_is_asked_and_how_it_is_judged(tmp_path, changes):
    (tmp_path / "one").write_text("1")
    (tmp_path / "two").write_text("1")
    plain, other = build(PLAIN, tmp_path), build(PLAIN | changes, tmp_path)
    assert plain.stamp != other.stamp


@pytest.mark.parametrize(
    "change", [{"goal": "h"}, {"persona": "p"}, {"knows": "k"}, {"stop": "s"}, {"max_turns": 3}]
)
def test_the_task_stamp_covers_all_of_a_user_that_a_model_plays(change):
    said, plain = {"id": "a", "turns": ["Hello."], "checks": [EXACT]}, {"goal": "g"}
    stamps = [
        build(said | {"user": user}).stamp for user in (plain, plain | change, plain | {"max_turns": 10})
    ]
    assert stamps[0] == stamps[2] != stamps[1]
    assert build(said).stamp not in stamps


def test_a_check_that_says_not_false_is_the_check_that_does_not_say_it(tmp_path):
    assert (
        build(PLAIN | {"checks": [EXACT | {"not": False}]}).stamp == build(PLAIN | {"checks": [EXACT]}).stamp
    )


def test_the_task_stamp_does_not_cover_how_a_scenario_is_filed(tmp_path):
    changes = {
        "id": "b",
        "tags": ["x"],
        "split": "eval",
        "min_score": 0.1,
        "timeout_s": 9,
        "family": "f",
        "domain": "d",
    }
    assert build(PLAIN, tmp_path).stamp == build(PLAIN | changes, tmp_path).stamp


def test_the_task_stamp_follows_the_content_of_files_and_not_their_place(tmp_path):
    stamps = []
    for folder, text, golden in [("a", "1", "x"), ("b", "1", "x"), ("c", "2", "x"), ("d", "1", "y")]:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "data").write_text(text)
        (tmp_path / folder / "golden").write_text(golden)
        check = {"kind": "file", "path": "out", "golden": "golden"}
        stamps.append(build(PLAIN | {"attachments": ["data"], "checks": [check]}, tmp_path / folder).stamp)
    assert stamps[0] == stamps[1]
    assert len(set(stamps)) == 3


def with_archive(folder, data=b"1"):
    (folder / "archives").mkdir(parents=True)
    (folder / "archives" / "base.tar.gz").write_bytes(data)
    return {"workspace": {"archive": "archives/base.tar.gz", "sha256": stamp_bytes(data)}}


def test_a_scenario_names_the_archive_of_its_workspace_and_its_environment(tmp_path):
    found = build(PLAIN | with_archive(tmp_path) | {"environment": "a" * 64}, tmp_path)
    path = tmp_path / "archives" / "base.tar.gz"
    assert found.workspace == WorkspaceArchive(
        archive="archives/base.tar.gz", path=path, sha256=stamp_bytes(b"1")
    )
    assert found.environment == "a" * 64


def test_the_task_stamp_covers_workspace_and_environment_only_where_they_are(tmp_path):
    assert build(PLAIN).stamp == stamp(
        {
            "prompt": "p",
            "input": None,
            "attachments": [],
            "tools": None,
            "checks": [["exact", 1.0, {"value": "3"}]],
        }
    )
    stamps = {
        build(PLAIN | with_archive(tmp_path / name, data) | more, tmp_path / name).stamp
        for name, data, more in [("a", b"1", {}), ("b", b"2", {}), ("c", b"1", {"environment": "a" * 64})]
    }
    assert len(stamps | {build(PLAIN).stamp}) == 4
    assert build(PLAIN | with_archive(tmp_path / "d"), tmp_path / "d").stamp in stamps


@pytest.mark.parametrize(
    ("workspace", "said"),
    [
        ({"sha256": "0" * 64}, "#/workspace/sha256: 'archives/base.tar.gz' has the sha256 6b86b273"),
        (
            {"archive": "../base.tar.gz"},
            "#/workspace/archive: '../base.tar.gz' must be a plain relative path",
        ),
        ({"archive": "archives/none"}, "#/workspace/archive: 'archives/none' cannot be read: No such file"),
        ({"archive": "out"}, "#/workspace/archive: 'out' is a link that leaves its folder"),
        ({"archive": "archives"}, "#/workspace/archive: 'archives' is not a regular file"),
        ({"sha256": "6B"}, "#/workspace/sha256: '6B' does not match"),
        ({"url": "x"}, "#/workspace"),
    ],
)
def test_an_archive_that_is_not_the_named_one_is_refused(tmp_path, refusal, workspace, said):
    data = PLAIN | with_archive(tmp_path)
    (tmp_path / "out").symlink_to("/etc/passwd")
    data["workspace"] |= workspace
    assert said in refusal("x.scenario.json", json.dumps(data))[0]


def test_a_changed_archive_is_seen(tmp_path):
    data = PLAIN | with_archive(tmp_path)
    build(data, tmp_path)
    (tmp_path / "archives" / "base.tar.gz").write_bytes(b"22")
    with pytest.raises(ScenarioError, match="restore the file, or write the digest that it has"):
        build(data, tmp_path)


def test_one_prompt_in_two_workspaces_is_two_tasks(tmp_path):
    suite = Suite()
    for name, split in [("a", "train"), ("b", "eval")]:
        data = PLAIN | with_archive(tmp_path / name, name.encode()) | {"id": name, "split": split}
        assert suite.add(build_scenario(data, source=name, checker=None, folder=tmp_path / name)) is None


def test_a_mark_needs_no_checks_and_a_file_does(refusal):
    assert build({"id": "a", "prompt": "p"}).checks == ()
    assert build({"id": "a", "prompt": "p"}).checker == "test_x"
    assert "missing key 'checks'" in refusal("x.scenario.yaml", "{id: a, prompt: p}")[0]


def test_a_mark_may_hold_tuples(tmp_path):
    assert build({"id": "a", "prompt": "p", "tools": ("a",), "tags": ("b",)}, tmp_path).tools == ("a",)


def test_a_link_inside_the_folder_is_an_attachment_like_any_other(tmp_path):
    (tmp_path / "real").write_text("1")
    (tmp_path / "link").symlink_to("real")
    (attachment,) = build(PLAIN | {"attachments": ["link"]}, tmp_path).attachments
    assert attachment.name == "link"
    assert attachment.sha256 == stamp_bytes(b"1")


def test_a_check_kind_from_a_plugin_is_validated_by_its_own_schema(load, tmp_path):
    kind = CheckKind(
        name="even",
        params={"type": "object", "properties": {"of": {"const": "n"}}, "additionalProperties": False},
        evaluate=lambda check, context: None,
        prepare=lambda params, folder: {**params, "folder": folder.name},
    )
    text = json.dumps(PLAIN | {"checks": [{"kind": "even", "of": "n"}]})
    (scenario,) = load("x.scenario.json", text, KINDS | {"even": kind})
    assert scenario.checks == (Check(kind="even", params={"of": "n", "folder": tmp_path.name}),)


def test_a_check_kind_from_a_plugin_with_a_malformed_schema_is_refused(load):
    kind = CheckKind(name="even", params={"type": "strnig"}, evaluate=lambda check, context: None)
    with pytest.raises(
        ScenarioError, match="params of the check kind 'even' are not a JSON Schema: /type: 'strnig'"
    ):
        load("x.scenario.json", json.dumps(PLAIN), KINDS | {"even": kind})


def test_a_weight_is_stamped_alike_however_it_is_written(tmp_path):
    stamps = {
        build(PLAIN | {"checks": [EXACT | weight]}).stamp for weight in ({}, {"weight": 1}, {"weight": 1.0})
    }
    assert len(stamps) == 1


def test_equal_ids_in_two_files_are_told_with_both_sources():
    one, other = make_scenario("a", source="x:1"), make_scenario("a", source="y:2", prompt="other")
    suite = Suite()
    assert suite.add(one) is None
    assert suite.add(one) is None
    assert suite.add(other) == "y:2: the id 'a' is taken by x:1; ids must be unique"


@pytest.mark.parametrize(("split", "bad"), [("train", False), ("eval", True)])
def test_one_task_must_not_be_in_both_splits(split, bad):
    one, other = make_scenario("a", source="x:1"), make_scenario("b", source="y:2", split=split, tools=("t",))
    suite = Suite()
    assert suite.add(one) is None
    problem = suite.add(other) or ""
    assert bool(problem) is bad
    if bad:
        assert problem.startswith(
            "y:2: scenario 'b' (eval) has the prompt, input and attachments of 'a' (train, x:1)"
        )


def test_tasks_with_other_files_or_input_are_other_tasks():
    files = [
        (),
        (Attachment(name="a", path=None, sha256="1"),),
        (Attachment(name="a", path=None, sha256="2"),),
    ]
    inputs = [None, {}, {"a": 1}]
    keys = {task_key(make_scenario(attachments=f, input=i)) for f, i in product(files, inputs)}
    assert len(keys) == 9


scenarios = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["a", "a-1", ".x"]), "prompt": st.just("p"),
        "checks": st.lists(checks, min_size=1, max_size=3),
    },
    optional={
        "domain": st.just("text"), "split": st.sampled_from(["train", "eval"]), "tools": st.just(["a", "b"]),
        "min_score": st.floats(0, 1), "tags": st.just(["x"]), "timeout_s": st.integers(1, 9),
        "family": texts.filter(bool), "input": st.sampled_from([{}, [], 0, "", False]),
        "attachments": st.just(["a"]), "truth": st.sampled_from(["checks", "majority", "judge"]),
        "rubric": st.sampled_from(["kind", ["kind", {"text": "short", "weight": 2}], ["x"] * 20]),
    },
)  # fmt: skip
mutations = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "id",
                "prompt",
                "split",
                "tools",
                "checks",
                "min_score",
                "tags",
                "zeal",
                "input",
                "truth",
                "rubric",
            ]
        ),
        json_values
        | st.sampled_from([["x"] * 21, [{"text": " "}], [{"weight": 1}], [{"text": "x", "weight": 0}]]),
    ),
    max_size=1,
)


@given(scenarios, mutations)
def test_the_fast_path_accepts_a_scenario_exactly_when_the_schema_does(scenario, changes):
    scenario |= dict(changes)
    assert accepts(load_schema("scenario"))(scenario) == (not violations("scenario", scenario))


@given(
    checks,
    st.lists(
        st.tuples(st.sampled_from(["value", "run", "calls", "pattern", "zeal"]), json_values), max_size=1
    ),
)
def test_the_fast_path_accepts_parameters_exactly_when_their_schema_does(check, changes):
    params = {
        key: value for key, value in {**check, **dict(changes)}.items() if key not in ("kind", "weight")
    }
    schema = KINDS[check["kind"]].params
    assert accepts(schema)(params) == (not violations(schema, params))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.scenario.yml", "{id: a, prompt: p?, checks: [{kind: exact, value: x}]}"),
        ("x.scenarios.yml", "- {id: a, prompt: p?, checks: [{kind: exact, value: x}]}"),
        ("x.scenarios.yaml", "- {id: a, prompt: p?, checks: [{kind: exact, value: x}]}"),
        ("x.scenarios.json", '[{"id": "a", "prompt": "p?", "checks": [{"kind": "exact", "value": "x"}]}]'),
        ("x.scenario.jsonl", '{"id": "a", "prompt": "p?", "checks": [{"kind": "exact", "value": "x"}]}'),
        ("x.scenario.csv", "prompt,answer\np?,x\n"),
    ],
)
def test_a_name_that_is_meant_for_scenarios_holds_scenarios(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    (scenario,) = load_scenarios(tmp_path / name, root=tmp_path, kinds=KINDS)
    assert (scenario.prompt, scenario.id) == ("p?", "x-1" if name.endswith("csv") else "a")


@pytest.mark.parametrize("bad", [1, LIMIT - 1, LIMIT, LIMIT + 1])
def test_no_more_problems_are_told_than_anybody_reads(load, bad):
    lines = [json.dumps(PLAIN | {"id": f"b{n}", "domain": n}) for n in range(bad)]
    with pytest.raises(ScenarioError) as refusal:
        load("x.scenarios.jsonl", "\n".join([json.dumps(PLAIN), *lines]))
    told = str(refusal.value).splitlines()
    more = ["x.scenarios.jsonl: there may be more; fix these first"] if bad >= LIMIT else []
    assert told[len(told) - len(more) :] == more
    seen = min(bad, LIMIT)
    assert len(told) == seen + len(more)


def test_defaults_are_told_once_and_an_item_that_is_no_mapping_by_its_place(load):
    with pytest.raises(ScenarioError) as refusal:
        load("x.scenario.yaml", "defaults: {domain: text}\nscenarios:\n- 3\n- [a]\n")
    first, second = str(refusal.value).splitlines()
    assert first.startswith("x.scenario.yaml:3: #/scenarios/0: ")
    assert second.startswith(("x.scenario.yaml:4: #/scenarios/1: ", "x.scenario.yaml: the same on line 4"))

"""Tools from a module: what makes one, what the model is told, what it may send."""

import json
from pathlib import Path
from typing import Any

import pytest
from support import ROOT
from support.examples import blocks_of
from support.model_actor import MODULE, Bench, script, wants

from pytest_tfgrpo.actors.openai.toolbox import open_toolbox
from pytest_tfgrpo.core.errors import ActorError
from pytest_tfgrpo.core.scenarios import Task

KINDS = '''
from typing import Annotated, Any, Literal, Optional

def search(
    text: Annotated[str, "what to look for"],
    count: int,
    share: float,
    exact: bool,
    words: list[str],
    other: list,
    table: dict[str, int],
    record: dict,
    unit: Literal["cm", "m"],
    level: Literal[1, "top"],
    maybe: Optional[str] = None,
    either: str | list[int] = "x",
    loud: bool = False,
) -> str:
    """Search the
    archive.

    More that only readers need.
    """
    return f"{text} {maybe} {either}"
'''


def test_name_description_and_arguments_come_from_the_function(bench: Bench) -> None:
    bench.tools(KINDS)
    bench.ask(script("3"))
    (spec,) = bench.model.requests[0].tools
    assert (spec.name, spec.description) == ("search", "Search the archive.")
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "what to look for"},
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "exact": {"type": "boolean"},
            "words": {"type": "array", "items": {"type": "string"}},
            "other": {"type": "array"},
            "table": {"type": "object", "additionalProperties": {"type": "integer"}},
            "record": {"type": "object"},
            "unit": {"type": "string", "enum": ["cm", "m"]},
            "level": {"enum": [1, "top"]},
            "maybe": {"type": ["string", "null"]},
            "either": {
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}],
                "default": "x",
            },
            "loud": {"type": "boolean", "default": False},
        },
        "required": [
            "text", "count", "share", "exact", "words", "other", "table", "record", "unit", "level",
        ],
        "additionalProperties": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def b(): ...\ndef a(): ...\ndef _hidden(): ...", ["b", "a"]),
        ("from json import dumps\nimport os\nclass C: ...\nX = 1\nasync def a(): ...", ["a"]),
    ],
)  # fmt: skip
def test_a_modules_own_public_functions_are_tools(bench: Bench, source: str, names: list[str]) -> None:
    bench.tools(source)
    bench.ask(script("3"))
    assert [spec.name for spec in bench.model.requests[0].tools] == names


@pytest.mark.parametrize("listed", ["{'sum-up': add}", "[add]", "(add,)"])
def test_a_mapping_or_sequence_names_them_too(bench: Bench, listed: str) -> None:
    bench.tools(f"def add(a: int) -> int:\n    return a\nTOOLS = {listed}\ndef other(): ...")
    bench.ask(script("3"), settings={"tools": f"{MODULE}:TOOLS"})
    assert [s.name for s in bench.model.requests[0].tools] == ["sum-up" if "sum" in listed else "add"]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def f(a): ...", "tool 'f': parameter 'a' has no annotation; use str"),
        ("def f(a: bytes): ...", "parameter 'a': the annotation <class 'bytes'> is not supported"),
        ("def f(a: list[set[int]]): ...", "the annotation set[int] is not supported"),
        ("def f(a: dict[int, str]): ...", "the annotation dict[int, str] is not supported"),
        ("from typing import Literal\ndef f(a: Literal[b'x']): ...", "a Literal of (b'x',) is not supported"),
        ("def f(*names: str): ...", "parameter '*names: str' cannot be passed by name"),
        ("def f(a: int, /): ...", "parameter 'a: int' cannot be passed by name"),
        ("def f(a: 'Nowhere'): ...", "its signature cannot be read: NameError"),
        (
            "from pytest_tfgrpo import ToolContext\ndef f(a: int, c: ToolContext): ...",
            "parameter 'c': only the first parameter can be a ToolContext",
        ),
        ("X = 1", "there is no public function in"),
        ("raise SystemExit('bye')", "failed: SystemExit: bye"),
    ],
)
def test_a_tool_that_cannot_be_offered_is_named_at_opening(bench: Bench, source: str, reason: str) -> None:
    bench.tools(source)
    with pytest.raises(ActorError) as caught:
        bench.actor()
    assert reason in str(caught.value)
    assert f"tools={MODULE}" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("3", "must be a mapping of names to functions, or a sequence of functions, not 3"),
        ("'abc'", "must be a mapping of names to functions"),
        ("{'f': 3}", "'f' is 3, not a function"),
        ("{'f g': len}", "a tool cannot be called 'f g'"),
        ("[print]", "tool 'print'"),
        ("[]", "there is no public function"),
    ],
)
def test_a_wrong_list_of_tools_is_refused(bench: Bench, value: str, reason: str) -> None:
    bench.tools(f"TOOLS = {value}")
    with pytest.raises(ActorError) as caught:
        bench.actor(tools=f"{MODULE}:TOOLS")
    assert reason in str(caught.value)


def test_a_module_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ActorError, match="'tools=no_such_tools': no module 'no_such_tools' in"):
        open_toolbox("no_such_tools", tmp_path, {})


def require(bench: Bench, *tools: str) -> None:
    bench.actor().require([(Task(id="sums-1", domain="d", prompt="p", tools=tools), ())])


def test_a_scenario_that_names_no_such_tool_is_refused_before_anything_is_paid(bench: Bench) -> None:
    bench.tools("def add(a: int) -> int:\n    return a")
    require(bench, "add", "read_file")
    with pytest.raises(ActorError) as caught:
        require(bench, "add", "ad")
    assert str(caught.value) == (
        "scenario 'sums-1': there is no tool 'ad'; known: add, list_files, read_file, write_file; "
        "did you mean 'add'?"
    )


def test_without_a_module_the_setting_is_named(bench: Bench) -> None:
    with pytest.raises(ActorError, match=r"set tools to the Python module that has it.*tfgrpo init"):
        require(bench, "multiply")


@pytest.mark.parametrize(
    ("tools", "offered"),
    [(None, ["one", "two"]), (("two",), ["two"]), ((), []), (("write_file", "one"), ["write_file", "one"])],
)
def test_a_scenario_gets_the_tools_that_it_allows(bench: Bench, tools: Any, offered: list[str]) -> None:
    bench.tools("def one(): ...\ndef two(): ...")
    bench.ask(script("3"), tools=tools)
    assert [spec.name for spec in bench.model.requests[0].tools] == offered


def test_a_tool_that_is_not_offered_is_not_called(bench: Bench) -> None:
    bench.tools("seen = []\ndef one() -> str:\n    seen.append(1)\ndef two(): ...")
    bench.ask(script(wants(("one", "{}")), "3"), tools=("two",))
    import tools_under_test

    assert tools_under_test.seen == []
    assert bench.told() == ["error: there is no tool 'one'; there are: two"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"n": 2}', "2 plain"),
        ('{"n": 2.0}', "2 plain"),
        ('{"n": 2, "text": "\\ud83d\\ude00"}', "2 \U0001f600"),
        ('{"n": 2', "error: the arguments cannot be read: not JSON: Expecting ',' delimiter, column 8"),
        ('[2]', "error: the arguments do not fit: [2] is not of type object"),
        ('"n"', "error: the arguments do not fit: 'n' is not of type object"),
        ("", "error: the arguments do not fit: missing key 'n'"),
        ('{"n": "2"}', "error: the arguments do not fit: /n: '2' is not of type integer"),
        ('{"n": true}', "error: the arguments do not fit: /n: True is not of type integer"),
        ('{"n": 2, "txt": "a"}', "error: the arguments do not fit: /txt: unknown key 'txt'; did you mean"
         " 'text'?"),
        ('{"n": 1, "n": 2}', "error: the arguments cannot be read: duplicate key 'n'"),
        ('{"n": NaN}', "error: the arguments cannot be read: 'NaN' is not a finite number"),
        ('{"n": 1e999}', "error: the arguments cannot be read: '1e999' is not a finite number"),
        ('{"n": 2, "text": "\\ud800"}', "error: the arguments cannot be read"),
        ('{"n": ' + "[" * 100_000, "error: the arguments cannot be read: nested more than 64 levels deep"),
        ('{"n": ' + "9" * 5000 + "}", "error: the arguments cannot be read: not JSON: Exceeds the limit"),
    ],
)  # fmt: skip
def test_arguments_are_checked_before_a_tool_is_called(bench: Bench, arguments: str, told: str) -> None:
    bench.tools("def note(n: int, text: str = 'plain') -> str:\n    return f'{n} {text}'")
    outcome = bench.ask(script(wants(("note", arguments)), "3"), answer_max_bytes=10**6)
    assert outcome.answer == "3"
    assert bench.told()[0].startswith(told)
    frame = outcome.frames[1]
    assert (frame.error is None) != told.startswith("error")
    assert len(str(frame.input)) <= 2100
    json.dumps(frame.input, allow_nan=False).encode()


def test_no_arguments_at_all_are_fine_where_none_are_needed(bench: Bench) -> None:
    bench.tools("def now() -> str:\n    return 'noon'")
    bench.ask(script(wants(("now", ""), ("now", "{}"), ("now", " ")), "3"))
    assert bench.told() == ["noon"] * 3


@pytest.mark.parametrize("keyword", ["def", "async def"])
@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("return 'text'", "text"),
        ("return {'a': [1, None, 'ü']}", '{"a": [1, null, "ü"]}'),
        ("return None", "null"),
        ("return {1, 2}", "error: the tool returned what JSON cannot hold: Object of type set"),
        ("return float('nan')", "error: the tool returned what JSON cannot hold"),
        ("raise ValueError('no such city')", "error: ValueError: no such city"),
        ("raise SystemExit(3)", "error: SystemExit: 3"),
        ("raise KeyboardInterrupt", "error: KeyboardInterrupt"),
        ("raise TimeoutError", "error: TimeoutError"),
        ("raise StopIteration", "error: "),
        ("import asyncio; raise asyncio.CancelledError", "error: "),
        ("raise ValueError('x' * 10**6)", "error: ValueError: xxx"),
    ],
)
def test_whatever_a_tool_does_the_model_is_told(bench: Bench, keyword: str, body: str, told: str) -> None:
    bench.tools(f"{keyword} work():\n    {body}")
    outcome = bench.ask(script(wants(("work", "{}")), "3"))
    assert outcome.answer == "3"
    assert bench.told()[0].startswith(told)
    assert len(bench.told()[0]) < 3000


def test_a_tool_that_changes_its_arguments_changes_no_frame(bench: Bench) -> None:
    bench.tools("def work(rows: list, table: dict):\n    rows.append({1})\n    table['x'] = object()")
    outcome = bench.ask(script(wants(("work", '{"rows": [1], "table": {}}')), "3"))
    assert outcome.frames[1].input == {"rows": [1], "table": {}}


def test_a_plain_function_may_return_an_awaitable(bench: Bench) -> None:
    bench.tools("async def _inner(): return 'inner'\ndef work():\n    return _inner()")
    bench.ask(script(wants(("work", "{}")), "3"))
    assert bench.told() == ["inner"]


def test_a_long_output_is_cut(bench: Bench) -> None:
    bench.tools("def work(n: int) -> str:\n    return 'x' * n")
    calls = [("work", json.dumps({"n": n})) for n in (10**7, 50_000, 50_001)]
    outcome = bench.ask(script(wants(*calls), "3"))
    assert [told.lstrip("x") for told in bench.told()] == [
        "\n[cut: 10000000 characters in all]",
        "",
        "\n[cut: 50001 characters in all]",
    ]
    assert len(outcome.frames[1].output) < 51_000


@pytest.mark.parametrize(("error", "status"), [("ProviderError", "error"), ("AgentFailure", "failed")])
def test_a_tool_may_say_whose_fault_it_is(bench: Bench, error: str, status: str) -> None:
    bench.tools(f"import pytest_tfgrpo\ndef work():\n    raise pytest_tfgrpo.{error}('shop closed', 'shop')")
    outcome = bench.ask(script(wants(("work", "{}"))))
    assert outcome.failure is not None
    assert (outcome.status, outcome.failure.code, outcome.failure.message) == (status, "shop", "shop closed")
    assert [(f.kind, f.error) for f in outcome.frames] == [("model", None), ("tool", "shop closed")]


def test_a_tool_past_its_own_time_limit_is_given_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_tfgrpo.actors.openai.invoke.TOOL_TIMEOUT_S", 0.02)
    bench.tools("import asyncio\nasync def work():\n    await asyncio.Event().wait()")
    assert bench.ask(script(wants(("work", "{}")), "3")).answer == "3"
    assert bench.told() == ["error: the tool did not end within 0.02 s"]


def test_a_tool_with_a_context_knows_its_rollout(bench: Bench) -> None:
    bench.tools(
        """
        from pytest_tfgrpo import ToolContext


        def look(context: ToolContext, name: str) -> list:
            return [context.scenario.id, context.seed, (context.workspace / name).read_text()]
        """
    )
    workspace = bench.workspace(note_txt=b"hello")
    bench.ask(script(wants(("look", '{"name": "note.txt"}')), "3"), workspace=workspace)
    assert json.loads(bench.told()[0]) == ["count-words", 2**62 + 1, "hello"]
    assert "context" not in bench.model.requests[0].tools[0].parameters["properties"]


def test_tools_side_by_side_make_the_workspace_once(bench: Bench) -> None:
    bench.tools(
        """
        import threading
        from pytest_tfgrpo import ToolContext
        all_here = threading.Barrier(8, timeout=100)

        def put(context: ToolContext, n: int) -> None:
            all_here.wait()
            (context.workspace / str(n)).write_text("x")
        """
    )
    bench.ask(script(wants(*[("put", f'{{"n": {n}}}') for n in range(8)]), "3"))
    assert len(list((bench.root / "work").iterdir())) == 8


def test_identity_changes_with_the_source_of_a_tool_wherever_it_is(bench: Bench) -> None:
    (bench.root / "tools_elsewhere.py").write_text("def far(): ...")
    bench.tools("from tools_elsewhere import far\nTOOLS = [far]")
    toolbox = open_toolbox(f"{MODULE}:TOOLS", bench.root, {})
    assert toolbox.identity["sha256"].keys() == {f"{MODULE}.py", "tools_elsewhere.py"}


def test_modules_on_several_lines_are_all_part_of_the_identity_and_a_model_takes_so_many_tools(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bench.root / "tools_beside.py").write_text("def far(): ...")
    bench.tools("def near(): ...")
    toolbox = open_toolbox(f"{MODULE}\n tools_beside\n", bench.root, {})
    assert toolbox.identity["sha256"].keys() == {f"{MODULE}.py", "tools_beside.py"}
    own = ["near", "far"]
    with_files = [*own, "list_files", "read_file", "write_file"]
    for files, names in ((False, own), (True, with_files), (False, own)):
        assert [spec.name for spec in toolbox.offer(None, files=files).specs] == names
    assert [*toolbox.offer(None, files=False, mocks={"read_file"}).tools] == [*own, "read_file"]
    monkeypatch.setattr("pytest_tfgrpo.actors.openai.toolbox.OFFERED_MAX", 2)
    assert len(toolbox.offer(("near", "read_file"), files=False).specs) == 2
    with pytest.raises(ActorError, match="there are 3 tools, and a model takes 2"):
        toolbox.offer(("far", "near", "read_file"), files=False)


def test_the_documented_tools_work(bench: Bench) -> None:
    page = (ROOT / "docs" / "actors.md").read_text(encoding="utf-8")
    (source,) = [block.text for block in blocks_of(page) if block.option("file") == "shop.py"]
    bench.tools(source)
    first = wants(("net_price", '{"article": "lamp"}'), ("net_price", '{"article": "sofa"}'))
    second = wants(("add_tax", '{"price": 40}'), ("note", '{"text": "dear"}'), ("add_tax", '{"price": "x"}'))
    outcome = bench.ask(script(first, second, "48.00"))
    assert outcome.answer == "48.00"
    assert bench.told() == [
        "40.0",
        "error: KeyError: 'sofa'",
        "48.00",
        "null",
        "error: the arguments do not fit: /price: 'x' is not of type number",
    ]
    assert (bench.root / "work" / "note.txt").read_text() == "dear"
    specs = {spec.name: spec for spec in bench.model.requests[0].tools}
    assert specs["net_price"].description == "Look up the net price of an article, in pounds."
    assert specs["note"].parameters["properties"].keys() == {"text"}


def test_half_a_character_in_the_name_of_a_tool_is_kept_as_a_question_mark(bench: Bench) -> None:
    bench.tools("def note(n: int) -> str:\n    return str(n)")
    outcome = bench.ask(script(wants(("no\ud800te", "{}")), "3"))
    assert outcome.frames[1].name == "no?te"

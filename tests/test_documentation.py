"""README and docs: every example works, shows its real output, and every link leads somewhere."""

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import ROOT, examples, reference
from support.builders import make_rollout
from support.collector import Collector, ReceivedSpan
from support.examples import Block
from support.fake_model import Body, FakeModel
from support.tools import require_tool, run_pytest

from pytest_tfgrpo import hookspecs
from pytest_tfgrpo.cli.project import parse_ini
from pytest_tfgrpo.core.records import Frame
from pytest_tfgrpo.core.scenarios import Prompt
from pytest_tfgrpo.core.schema import violations
from pytest_tfgrpo.core.settings import BY_NAME, TABLE
from pytest_tfgrpo.feedback.settings import LOOP_TABLE
from pytest_tfgrpo.harness.engine.executors.cluster.executor_file import load_executor_file
from pytest_tfgrpo.harness.gate.config import load_gates
from pytest_tfgrpo.harness.scoring.checks.registry import KINDS
from pytest_tfgrpo.harness.suite.models_file import load_models
from pytest_tfgrpo.harness.suite.scenario_files import load_scenarios
from pytest_tfgrpo.harness.suite.yaml_text import parse_yaml
from pytest_tfgrpo.live.config import load_live_config
from pytest_tfgrpo.live.settings import PREFIX
from pytest_tfgrpo.live.settings import TABLE as LIVE_TABLE
from pytest_tfgrpo.patterns.recipe.recipe_file import parse_recipes
from pytest_tfgrpo.sinks.otlp_destination import DEFAULT_ENDPOINT
from pytest_tfgrpo.sinks.span_content import SpanContent

PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "guides").glob("*.md")),
]
LANGUAGES = {
    "console",
    "csv",
    "ini",
    "json",
    "jsonl",
    "markdown",
    "perl",
    "python",
    "sh",
    "text",
    "toml",
    "yaml",
}
GENERATED = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end of generated -->)", re.DOTALL)


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_work_as_shown(
    page: Path, tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, before = tmp_path, None
    if page.name != "telemetry.md":
        monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT")
    monkeypatch.setenv("RAY_ADDRESS", "local")  # other tests may have a cluster on this machine
    for block in examples.blocks_of(text_of(page)):
        if block.folder:
            folder = examples.make_folder(tmp_path, block)
        else:
            where = f"{page.name}:{block.line}"
            assert block.language in LANGUAGES, f"{where}: say what the block is"
            before = check(block, folder, where, before)
    if page.name == "telemetry.md":
        check_spans(collector.spans, text_of(page))


def parcel_service(request: Body, _: int) -> str:
    """Answer as the agent of the guide on conversations, and as the model that plays its user."""
    first, last = (request["messages"][n]["content"] for n in (0, -1))
    if request["model"] == "my-agent":
        return "A new parcel is on its way." if "4711" in last else "Which order is it?"
    assert "A new parcel, not your money back." in first
    over = "on its way" in last
    return json.dumps({"over": over, "message": "" if over else "It is order 4711."})


def test_the_user_that_a_model_plays_in_the_guide_says_what_it_knows_and_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = [*examples.blocks_of(text_of(ROOT / "docs" / "guides" / "conversations.md"))]
    (command,) = (block for block in blocks if "never-run" in block.words)
    (suite,) = (block for block in blocks if "file=parcel.scenario.yaml" in block.words)
    write(suite, tmp_path)
    with FakeModel(parcel_service) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-guide")
        done = examples.run(command.text, tmp_path)
    assert done.code == 0, done.output
    assert "5 rollouts scored, gt mean 1.000" in done.output
    agents = [one["messages"] for one in server.requests if one["model"] == "my-agent"]
    longest = max(agents, key=len)
    assert [one["content"] for one in longest if one["role"] != "system"] == [
        "My parcel has not come.",
        "Which order is it?",
        "It is order 4711.",
    ]


def check_spans(spans: list[ReceivedSpan], page: str) -> None:
    """Check that a page has what its commands have sent, and nothing that is never sent."""
    assert {span.resource["service.name"] for span in spans} == {"my-agent"}
    known = set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)*)`", page))
    assert {key for span in spans for key in span.attributes} <= known
    source = "".join(path.read_text("utf-8") for path in (ROOT / "pytest_tfgrpo" / "sinks").glob("*.py"))
    assert [n for n in known if n.startswith(("gen_ai.", "tfgrpo.")) and f'"{n}"' not in source] == []


def check(block: Block, folder: Path, where: str, before: examples.Done | None) -> examples.Done | None:
    """Check one block; returns what a command block did, for the output block after it."""
    write(block, folder)
    match block.language:
        case "console":
            run_console(block, folder, where)
        case "sh" if "never-run" not in block.words:
            return examples.run(block.text.strip(), folder)
        case "text" if "output" in block.words:
            assert before is not None, f"{where}: output of nothing"
            compare(block.text, before, 0, where)
        case "python":
            program = [sys.executable, "-c", compile_only(block) or block.text]
            alone = {"HF_HOME": str(folder / ".hf"), "HF_HUB_OFFLINE": "1"}
            subprocess.run(program, cwd=folder, check=True, timeout=100, env=os.environ | alone)
        case "perl":
            require_tool("perl")
        case "json":
            value = json.loads(block.text)
            schema = block.option("schema")
            assert schema is None or not violations(schema, value), f"{where}: {violations(schema, value)}"
        case "yaml":
            check_yaml(block, folder)
        case "toml" if "live" in block.words:
            assert load_live_config(folder / (block.option("file") or ""), {"enabled": True}, {}).points
        case "toml" if "harvest" in block.words:
            assert parse_recipes(block.text)
        case "toml" if "executor" in block.words:
            assert load_executor_file(folder).resources
        case "ini" | "toml":
            check_settings(block, where)
    return None


def write(block: Block, folder: Path) -> None:
    name, added = block.option("file"), block.option("append")
    if name or added:
        path = folder / (name or added or "")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a" if added else "w", encoding="utf-8") as file:
            file.write(block.text)
        if block.text.startswith("#!"):
            path.chmod(0o755)


def run_console(block: Block, folder: Path, where: str) -> None:
    runs = list(examples.commands_of(block.text))
    for place, (command, expected) in enumerate(runs):
        code = int(block.option("exit") or 0) if place == len(runs) - 1 else 0
        compare(expected, examples.run(command, folder), code, where)


def compare(expected: str, done: examples.Done, code: int, where: str) -> None:
    shown = f"{where}: $ {done.command}\n{done.output}"
    assert done.code == code, shown
    assert examples.pattern_of(expected).fullmatch(done.output.rstrip() + "\n"), shown


def compile_only(block: Block) -> str | None:
    """Return a program that only compiles a file, as pytest is what runs it; None to run the block."""
    name = block.option("file")
    return f"compile({block.text!r}, {name!r}, 'exec')" if name else None


def check_yaml(block: Block, folder: Path) -> None:
    if "scenario" in block.words or "checks" in block.words:
        text = block.text
        if "checks" in block.words:
            text = "id: x\nprompt: p\nchecks:\n" + text
        path = folder / (block.option("file") or f"example-{block.line}.scenario.yaml")
        path.write_text(text, encoding="utf-8")
        assert load_scenarios(path, root=folder, kinds=KINDS)
        if not block.option("file"):
            path.unlink()
    elif "models" in block.words:
        path = folder / "models.yaml"
        path.write_text(block.text, encoding="utf-8")
        assert load_models(path).source
    elif "gates" in block.words:
        path = folder / "gates.yaml"
        path.write_text(block.text, encoding="utf-8")
        assert load_gates(path)
    elif "ray-cluster" in block.words:
        util = importlib.import_module("ray.autoscaler._private.util")
        util.validate_config(util.prepare_config(yaml.safe_load(block.text)))
    else:
        parse_yaml(block.text)


def check_settings(block: Block, where: str) -> None:
    name = "pyproject.toml" if block.language == "toml" else "pytest.ini"
    text = block.text if "[" in block.text.split("\n")[0] else f"[pytest]\n{block.text}"
    found = parse_ini(Path(name), text)
    assert found is not None, where
    for key, value in found.keys.items():
        if key.startswith("tfgrpo_"):
            BY_NAME[key.removeprefix("tfgrpo_")].parse(value)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL)):
        name, _, anchor = target.partition("#")
        if "://" in name:
            continue
        file = page if not name else (page.parent / name).resolve()
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


def anchors(page: Path) -> set[str]:
    """Return the anchors that a page's headings make."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [p for p in PAGES if p.name != "CHANGELOG.md"], ids=lambda page: page.name)
def test_a_page_names_only_what_there_is(page: Path) -> None:
    flags = {s.flag for s in TABLE} | {"--tfgrpo", "--tfgrpo-resume", "--tfgrpo-dry-run"}
    keys = {s.ini for s in TABLE} | {"tfgrpo_epoch", "tfgrpo_agent"}  # an attribute of spans, a fixture
    variables = {name for s in TABLE for name in (s.env, *s.aliases)} | {"FEATURE_TFGRPO_GROUP", "TFGRPO_X_Y"}
    variables |= {PREFIX + key.upper() for key in LIVE_TABLE} | {PREFIX.rstrip("_")}
    variables |= {row.env for row in LOOP_TABLE.values()} | {"TFGRPO_LOOP", "TFGRPO_LOOP_CONFIG"}
    hooks = {name for name in dir(hookspecs) if name.startswith("pytest_tfgrpo_")}
    text = text_of(page)
    named = set(re.findall(r"(?<![\w-])--tfgrpo[a-z-]*(?<!-)", text)) - flags - {"--tfgrpo-x-y"}
    named |= set(re.findall(r"(?<![\w/])tfgrpo_[a-z_]+", text)) - keys - {"tfgrpo_x_y"}
    named |= set(re.findall(r"(?<!\w)(?:FEATURE_)?TFGRPO_[A-Z_]*[A-Z]", text)) - variables
    named |= set(re.findall(r"(?<!\w)pytest_tfgrpo_[a-z_]+", text)) - hooks
    assert named == set()


def test_every_page_can_be_reached_from_the_index() -> None:
    index = text_of(ROOT / "docs" / "index.md")
    assert [
        p.name
        for p in PAGES
        if p.parent != ROOT and p.name != "index.md" and p.relative_to(ROOT / "docs").as_posix() not in index
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_generated_parts_say_what_the_program_says(page: Path, pytestconfig: pytest.Config) -> None:
    text = text_of(page)
    made = GENERATED.sub(lambda m: f"{m[1]}\n{reference.PARTS[m[2]]()}\n{m[3]}", text)
    if pytestconfig.getoption("update_golden"):
        page.write_text(made, encoding="utf-8")
    else:
        assert text == made, "write it anew with: pytest tests/test_documentation.py --update-golden"


def test_every_generated_part_is_in_a_page() -> None:
    used = {match[2] for page in PAGES for match in GENERATED.finditer(text_of(page))}
    assert used == reference.PARTS.keys()


def test_the_collector_of_the_page_on_telemetry_listens_where_spans_are_sent() -> None:
    blocks = examples.blocks_of(text_of(ROOT / "docs" / "guides" / "telemetry.md"))
    (text,) = (block.text for block in blocks if "collector" in block.words)
    config: Any = parse_yaml(text).value
    host = config["receivers"]["otlp"]["protocols"]["http"]["endpoint"]
    assert f"http://{host}" == DEFAULT_ENDPOINT
    for pipeline in config["service"]["pipelines"].values():
        for kind in ("receivers", "processors", "exporters"):
            assert set(pipeline[kind]) == config[kind].keys()
    dropped = {action["key"] for action in config["processors"]["attributes/content"]["actions"]}
    content = SpanContent(on=True, text_max=None)
    rollout = make_rollout(0, 1.0, answer="Paris")
    content.keep(rollout.rollout_id, Prompt(system="Solve the task.", user="Which city?"))
    call = Frame(kind="tool", name="look", input={"at": "map"}, output="Paris")
    sent = b"".join(
        [*content.of_rollout(rollout), *content.of_tool(call), *content.of_call("Which?", "Paris", "")]
    )
    assert {key.decode() for key in re.findall(rb"gen_ai\.[a-z_.]+", sent)} == dropped


def test_pytests_help_shows_every_setting(tmp_path: Path) -> None:
    shown = " ".join(run_pytest(tmp_path, "--help").stdout.split())
    for setting in TABLE:
        assert setting.flag in shown
        assert " ".join(setting.help.split()) in shown


def test_the_commands_of_the_readme_are_those_that_ci_runs() -> None:
    commands = [block.text.strip() for block in readme_commands()]
    lines = [
        line for line in text_of(ROOT / "README.md").splitlines() if line.startswith("python3 -m venv .venv")
    ]
    assert commands == lines, "CI finds the commands by how their lines start"
    assert all(examples.SET_UP.match(command) for command in commands)
    assert [examples.SET_UP.sub("", command) for command in commands] == [
        ".venv/bin/pytest --tfgrpo fixtures",
        ".venv/bin/pytest -n 2 --dist worksteal",
    ]


def readme_commands() -> Iterator[Block]:
    """Yield the blocks that set an environment up."""
    blocks = examples.blocks_of(text_of(ROOT / "README.md"))
    return (b for b in blocks if b.language == "sh" and b.text.startswith("python3 -m venv"))


@pytest.mark.parametrize(
    ("expected", "output", "same"),
    [
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\nd\n", "a\nb\nc\ne\n", False),
        ("took 3 ms ... x\n", "took 12.5 ms in all x\n", True),
        ("run 20260101T000000-00000000\n", "run 20261120T224215-85933255\n", True),
        ("a   b\n", "a b\n", True),
        ("0.948\n", "0.949\n", False),
    ],
)
def test_an_output_is_compared_but_for_what_may_differ(expected: str, output: str, same: bool) -> None:
    assert (examples.pattern_of(expected).fullmatch(output) is not None) is same

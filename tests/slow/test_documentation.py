"""README and docs: every example works, shows its real output, and every link leads somewhere."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT, examples
from support.collector import Collector, ReceivedSpan
from support.documentation import PAGES, text_of
from support.examples import Block
from support.fake_model import Body, FakeModel, Reply, calls
from support.tools import require_tool, run_pytest

from pytest_tfgrpo.cli.project import parse_ini
from pytest_tfgrpo.core.settings import BY_NAME, TABLE
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.engine.executors.cluster.executor_file import load_executor_file
from pytest_tfgrpo.gate.config import load_gates
from pytest_tfgrpo.harvest.recipe.recipe_file import parse_recipes
from pytest_tfgrpo.production.config import load_loop_config
from pytest_tfgrpo.production.live.config import load_live_config
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.documents.yaml_text import parse_yaml
from pytest_tfgrpo.suite.models_file import load_models
from pytest_tfgrpo.suite.scenario_files import load_scenarios

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
    "sql",
    "text",
    "toml",
    "yaml",
}


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


def weather_service(request: Body, _: int) -> str | Reply:
    """Answer as the model of the recipe on the OpenAI SDK: look first, then say what was found."""
    last = request["messages"][-1]
    return f"It is {last['content']}." if last["role"] == "tool" else calls(("look_up", {"city": "Oslo"}))


def test_the_agent_of_the_recipe_on_the_openai_sdk_reports_what_its_tools_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = examples.blocks_of(text_of(ROOT / "docs" / "recipes.md"))
    (agent,) = (block for block in blocks if "file=sdk_agent.py" in block.words)
    write(agent, tmp_path)
    checks = [
        {"kind": "contains", "value": "sunny"},
        {"kind": "tool_calls", "calls": [{"name": "look_up", "arguments": {"city": "Oslo"}}]},
    ]
    scenario = {"id": "oslo", "split": "eval", "prompt": "What is the weather in Oslo?", "checks": checks}
    (tmp_path / "oslo.scenario.json").write_text(json.dumps(scenario), encoding="utf-8")
    with FakeModel(weather_service) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-recipe")
        done = examples.run(
            "pytest -q --tfgrpo-allow-paid=true --tfgrpo-actor=python:sdk_agent:solve", tmp_path
        )
    assert done.code == 0, done.output
    assert len(server.requests) == 2


def check_spans(spans: list[ReceivedSpan], page: str) -> None:
    """Check that a page has what its commands have sent, and nothing that is never sent."""
    assert {span.resource["service.name"] for span in spans} == {"my-agent"}
    known = set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)*)`", page))
    assert {key for span in spans for key in span.attributes} <= known
    sinks = ROOT / "pytest_tfgrpo" / "telemetry" / "sinks"
    source = "".join(path.read_text("utf-8") for path in sinks.glob("*.py"))
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
        case "toml" if "loop" in block.words:
            path = folder / "example-loop.toml"
            path.write_text(block.text, encoding="utf-8")
            assert load_loop_config(path, {})
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
    """Return a program that only compiles a block that something else runs; None to run the block."""
    name = block.option("file") or ("example.py" if "never-run" in block.words else "")
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


def test_pytests_help_shows_every_setting(tmp_path: Path) -> None:
    shown = " ".join(run_pytest(tmp_path, "--help").stdout.split())
    for setting in TABLE:
        assert setting.flag in shown
        assert " ".join(setting.help.split()) in shown

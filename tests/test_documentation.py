"""README and docs: every example works, shows its real output, and every link leads somewhere."""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from support import ROOT, examples, reference
from support.builders import make_rollout
from support.documentation import PAGES, text_of
from support.examples import Block

import pytest_tfgrpo
from pytest_tfgrpo import hookspecs
from pytest_tfgrpo.core.records import Frame
from pytest_tfgrpo.core.scenarios import Prompt
from pytest_tfgrpo.core.settings import TABLE
from pytest_tfgrpo.patterns.learn_file import LEARN_TABLE
from pytest_tfgrpo.production.live.settings import PREFIX
from pytest_tfgrpo.production.live.settings import TABLE as LIVE_TABLE
from pytest_tfgrpo.production.settings import LOOP_TABLE
from pytest_tfgrpo.suite.documents.yaml_text import parse_yaml
from pytest_tfgrpo.telemetry.sinks.otlp_destination import DEFAULT_ENDPOINT
from pytest_tfgrpo.telemetry.sinks.span_content import SpanContent

FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
GENERATED = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end of generated -->)", re.DOTALL)


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
    variables |= {row.env for row in LEARN_TABLE.values()}
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


def test_the_site_has_every_page() -> None:
    nav = re.findall(r"^ *- [^:]+: (\S+\.md)$", text_of(ROOT / "mkdocs.yml"), re.MULTILINE)
    docs = ROOT / "docs"
    pages = [page.relative_to(docs).as_posix() for page in PAGES if page.is_relative_to(docs)]
    assert sorted(nav) == sorted([*pages, "start.md", "changelog.md"])


def test_the_api_reference_has_every_public_name() -> None:
    named = re.findall(r"^::: pytest_tfgrpo\.(\w+)$", text_of(ROOT / "docs" / "api.md"), re.MULTILINE)
    assert sorted(named) == sorted({*pytest_tfgrpo.__all__} - {"__version__"})


def test_each_decision_that_the_code_cites_is_explained() -> None:
    known = re.findall(r"^\* \*\*(\d+a?)\*\* ", text_of(ROOT / "docs" / "design-decisions.md"), re.MULTILINE)
    sources = chain(*((ROOT / folder).rglob("*.py") for folder in ("pytest_tfgrpo", "benchmarks")))
    cited = {n for file in sources for n in re.findall(r"\bdecisions? (\d+a?)\b", text_of(file))}
    assert len(cited) > 20
    assert sorted(cited - set(known)) == []


def test_the_messages_of_the_troubleshooting_page_are_those_of_the_program() -> None:
    page = text_of(ROOT / "docs" / "troubleshooting.md")
    rows = re.findall(r"^\* (`[^`]+`(?:, `[^`]+`)*): ", page, re.MULTILINE)
    assert len(rows) == len(re.findall(r"^\* ", page, re.MULTILINE)), "a row starts with its message"
    source = "".join(text_of(path) for path in (ROOT / "pytest_tfgrpo").rglob("*.py"))
    joined = re.sub(r'"\n +f?"', "", source)
    assert [
        message for row in rows for message in re.findall(r"`([^`]+)`", row) if message not in joined
    ] == []


def test_the_newest_release_of_the_changelog_is_the_one_to_cite() -> None:
    newest = re.search(r"^## \[([\d.]+)\] - ([\d-]+)$", text_of(ROOT / "CHANGELOG.md"), re.MULTILINE)
    citation: Any = parse_yaml(text_of(ROOT / "CITATION.cff")).value
    assert newest is not None
    assert newest.groups() == (citation["version"], citation["date-released"])
    assert newest[1] == pytest_tfgrpo.__version__
    assert citation.keys() >= {"cff-version", "message", "title", "authors"}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_an_issue_form_has_what_the_host_demands(form: Path) -> None:
    value: Any = parse_yaml(text_of(form)).value
    assert value.keys() >= {"name", "description", "body"}
    assert len({field["id"] for field in value["body"]}) == len(value["body"])
    assert all(field["attributes"]["label"] for field in value["body"])
    assert {field["type"] for field in value["body"]} <= {"textarea", "input", "dropdown"}


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


def test_the_commands_of_the_readme_are_those_that_ci_runs() -> None:
    commands = [block.text.strip() for block in readme_commands()]
    lines = [
        line for line in text_of(ROOT / "README.md").splitlines() if line.startswith("python3 -m venv .venv")
    ]
    assert commands == lines, "CI finds the commands by how their lines start"
    assert all(examples.SET_UP.match(command) for command in commands)
    assert [examples.SET_UP.sub("", command) for command in commands] == [
        ".venv/bin/pytest --tfgrpo fixtures",
        ".venv/bin/pytest -n 3 --dist worksteal",
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

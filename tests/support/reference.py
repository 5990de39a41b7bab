"""Reference pages: the parts of the documentation that are made from the program."""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_tfgrpo import cli, hookspecs
from pytest_tfgrpo.cli.parsers import Parser
from pytest_tfgrpo.core.keys.setting import Setting
from pytest_tfgrpo.core.keys.setting_parsers import parse_bool
from pytest_tfgrpo.core.settings import TABLE
from pytest_tfgrpo.core.wire.schema import load_schema
from pytest_tfgrpo.patterns.learn_file import LEARN_TABLE
from pytest_tfgrpo.production.live.settings import TABLE as LIVE_TABLE
from pytest_tfgrpo.production.loop_file import spelled
from pytest_tfgrpo.production.settings import LOOP_TABLE
from pytest_tfgrpo.production.sinks.prometheus.families import FAMILIES
from pytest_tfgrpo.scoring.checks.registry import KINDS
from support.traces.framework_table import ROWS, gaps_of, lines_of


def settings() -> str:
    """Return the list of settings."""
    return "\n".join(_setting(s.name, s.default, s, s.help) for s in TABLE)


def live_settings() -> str:
    """Return the list of settings of live RL."""
    return "\n".join(_setting(key, _spelled(s.default), s, s.help) for key, s in LIVE_TABLE.items())


def loop_settings() -> str:
    """Return the list of settings of the feedback loop."""
    rows = LOOP_TABLE.values()
    return "\n".join(
        f"* `[{s.section}] {s.key}` = {_default(spelled(s.default))}: {_cell(s.help)}" for s in rows
    )


def learn_settings() -> str:
    """Return the list of settings of learning from finished work."""
    rows = LEARN_TABLE.values()
    return "\n".join(f"* `{row.key}` = {_default(spelled(row.default))}: {_cell(row.help)}" for row in rows)


def loop_metrics() -> str:
    """Return the table of the loop's metrics."""
    rows = [
        (f"`{one.name}`", one.kind, ", ".join(f"`{label}`" for label in one.labels), _cell(one.about))
        for one in FAMILIES
    ]
    return _table(("metric", "kind", "labels", "what it is"), rows)


def _setting(name: str, default: object, setting: Setting[Any], meaning: str) -> str:
    """Return a row of a list: name, default, what a value must be, meaning."""
    values = _guard(setting)
    shown = f" = {_default(default)}" if default is not None else ""
    return f"* `{name}`{shown}{f' ({values})' if values else ''}: {_cell(meaning)}"


def frameworks() -> str:
    """Return the table of frameworks: what to write for each, and what does not come out."""
    rows = [
        (row.name, f"`{row.package}`" if row.package else "nothing", lines_of(row), row.content, _gaps(key))
        for key, row in ROWS.items()
    ]
    return _table(("framework", "install", "lines", "content", "what does not come out"), rows)


def _gaps(key: str) -> str:
    """Return what does not come out of a framework's spans, without the reasons."""
    return re.sub(r" \((?:[^()]|\([^()]*\))*\)", "", gaps_of(key))


def _spelled(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def _default(value: object) -> str:
    return "" if value is None else f"`{value!s}`"


def _guard(setting: Setting[Any]) -> str:
    """Return what a value must be, in the words of its own error."""
    try:
        setting.parse("")
    except ValueError as error:
        text = re.sub("^must (be )?(an? |one of )?", "", str(error))
        text = re.sub(r"^match (\S+);", r"match `\1`;", text)
        return "" if text == "not be empty" or setting.parse is parse_bool else _cell(text)
    raise AssertionError(f"{setting.name} takes the empty text")


def aliases() -> str:
    """Return the environment variables that stand for a setting beside its own."""
    rows = [(f"`{name}`", f"`{s.name}`") for s in TABLE for name in s.aliases]
    return _table(("variable", "setting"), rows)


def hooks() -> str:
    """Return the reference of the hooks: signature and docstring of each."""
    tree = ast.parse(Path(str(hookspecs.__file__)).read_text(encoding="utf-8"))
    parts = [(ast.get_docstring(tree) or "").partition("\n\n")[2]]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            assert node.returns is not None
            signature = f"{node.name}({ast.unparse(node.args)}) -> {ast.unparse(node.returns)}"
            parts += [f"### {node.name}", f"```text\n{signature}\n```"]
            parts.append(_code(ast.get_docstring(node) or ""))
    return "\n\n".join(map(_code, parts))


def fields() -> str:
    """Return the list of the fields of a scenario."""
    schema = load_schema("scenario")
    return _parameters(schema["properties"], schema["required"])


def gate_keys() -> str:
    """Return the list of the keys of a named gate."""
    return _parameters(load_schema("gates")["$defs"]["gate"]["properties"])


def checks() -> str:
    """Return the reference of the check kinds: what each finds, and its parameters."""
    kinds = load_schema("scenario")["$defs"]
    assert kinds.keys() == KINDS.keys()
    parts = []
    for kind, schema in kinds.items():
        parts += [
            f"### {kind}",
            f"{_cell(schema['description'][:1].upper() + schema['description'][1:])}.",
            _parameters(schema["properties"], schema.get("required", ())),
        ]
    return "\n\n".join(parts)


def _parameters(properties: Mapping[str, Mapping[str, Any]], required: Collection[str] = ()) -> str:
    """Return a list of keys: type, whether it is required or its default, and meaning."""
    lines = []
    for name, schema in properties.items():
        facts = [_type(schema)]
        if name in required:
            facts.append("required")
        elif schema.get("default") is not None:
            facts.append(f"default {_json(schema['default'])}")
        meaning = _cell(schema.get("description", ""))
        lines.append(f"* `{name}` ({', '.join(facts)})" + (f": {meaning}" if meaning else ""))
    return "\n".join(lines)


def commands() -> str:
    """Return a line for each ``tfgrpo`` command: its arguments without the options, and what it does."""
    return "\n".join(
        f"* `{' '.join((parser.prog.removeprefix('tfgrpo '), *_operands(parser)))}`: {parser.description}"
        for parser in _leaves(cli.parser())
    )


def _leaves(parser: Parser) -> Iterator[Parser]:
    parser.load()
    groups = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if groups and parser.get_default("work") is not None:  # a command that has further ones
        yield parser
    for group in groups:
        for child in dict.fromkeys(group.choices.values()):  # an alias names the same parser
            yield from _leaves(child)
    if not groups:
        yield parser


def _operands(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if not action.option_strings and not isinstance(action, argparse._SubParsersAction):
            metavar = str(action.metavar or action.dest)
            yield f"[{metavar}]" if action.nargs in ("?", "*") else metavar


def _type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    names = schema.get("type", "any value")
    text = names if isinstance(names, str) else " or ".join(names)
    return (
        f"{text} of {_type(schema['items'])}s"
        if text == "array" and "type" in schema.get("items", {})
        else text
    )


def _json(value: object) -> str:
    return "" if value is None else f"`{json.dumps(value)}`"


def _code(text: str) -> str:
    """Return reStructuredText's double backquotes as Markdown's single ones."""
    return text.replace("``", "`") if "```" not in text else text


def _cell(text: str) -> str:
    return _code(text).replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


PARTS: Mapping[str, Callable[[], str]] = {
    "settings": settings,
    "aliases": aliases,
    "hooks": hooks,
    "fields": fields,
    "checks": checks,
    "commands": commands,
    "live_settings": live_settings,
    "loop_settings": loop_settings,
    "learn_settings": learn_settings,
    "loop_metrics": loop_metrics,
    "gate_keys": gate_keys,
    "frameworks": frameworks,
}
"""Generated parts by the name that a page calls them by."""

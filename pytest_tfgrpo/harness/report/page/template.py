"""The templates of a page; the only file that imports jinja2."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pytest_tfgrpo.core.redact import redact
from pytest_tfgrpo.core.text import (
    block,
    cost,
    count,
    duration,
    interval,
    label,
    line,
    money,
    number,
    plural,
    scenarios_of,
    signed,
)
from pytest_tfgrpo.harness.report import compare_lines, gates, judge, trust
from pytest_tfgrpo.harness.report import cost as spending
from pytest_tfgrpo.harness.report.gates import OUTCOMES
from pytest_tfgrpo.harness.report.page import figures
from pytest_tfgrpo.harness.report.terminal import lessons_changed

if TYPE_CHECKING:
    from jinja2 import Environment

SCRIPTS = ("text.js", "data.js", "table.js", "map.js", "group.js", "page.js")
"""In the order in which they are put together."""


def fill(**values: Any) -> str:
    """Return the page's markup without its data."""
    return _environment().get_template("report.html.j2").render(**values)


@cache
def style() -> str:
    """Return the style sheet."""
    return _source("report.css")


@cache
def script() -> str:
    """Return the scripts as one."""
    parts = "\n".join(_source(name) for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}\n}})();\n'


def _source(name: str) -> str:
    environment = _environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("pytest_tfgrpo.harness.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: redact(value) if type(value) is str else value,
    )
    environment.filters.update(
        line=lambda value: line(str(value)),
        block=lambda value: block(str(value)),
        number=number,
        count=count,
        duration=duration,
        interval=interval,
        plural=plural,
        scenarios_of=scenarios_of,
        money=money,
        signed=signed,
        label=label,
        lessons=lessons_changed,
        part=lambda value: quote(str(value).encode("utf-8", "replace"), safe=""),
        shape=figures.shape,
    )
    environment.globals.update(
        trust=trust,
        gates=gates,
        cost=cost,
        outcomes=OUTCOMES,
        spending=spending,
        judge=judge,
        versus=compare_lines,
    )
    return environment

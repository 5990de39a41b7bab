"""The templates of a page; the only file that imports jinja2."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pytest_tfgrpo.core.texts.text import (
    block,
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
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.report import cost as spending
from pytest_tfgrpo.report import gates, named_metrics, trust
from pytest_tfgrpo.report.comparison import compare_columns, compare_lines
from pytest_tfgrpo.report.gates import OUTCOMES
from pytest_tfgrpo.report.judging import judge
from pytest_tfgrpo.report.page import headline, page_tables
from pytest_tfgrpo.report.page.grid import final_label, phase_name
from pytest_tfgrpo.report.tables import heat, lessons_changed, spent

if TYPE_CHECKING:
    from jinja2 import Environment

SCRIPTS = (
    "text.js",
    "data.js",
    "details.js",
    "sortable_table.js",
    "scenario_columns.js",
    "map.js",
    "export.js",
    "filter.js",
    "copy.js",
    "metrics.js",
    "evidence.js",
    "answer.js",
    "chat.js",
    "group.js",
    "word_diff.js",
    "sides.js",
    "review.js",
    "page.js",
)
"""In the order in which they are put together."""
STYLES = (
    "report.css",
    "map.css",
    "review.css",
    "compare.css",
    "sides.css",
    "metrics.css",
    "evidence.css",
    "details.css",
    "answer.css",
    "chat.css",
    "phone.css",
    "print.css",
)
"""In the order in which they are put together."""


def fill(template: str = "report.html.j2", **values: Any) -> str:
    """Return a page's markup without its data."""
    return _environment().get_template(template).render(**values)


def policy(style: str, script: str, more: str = "", *, answers: bool = False) -> str:
    """Return the content security policy of a page: its one style sheet and its one script, and `more`.

    A page that shows `answers` may also run the library for Markdown, and has pictures in itself.
    """
    library, pictures = (f" '{_digest(markdown_library())}'", "img-src data:; ") if answers else ("", "")
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'{library}; "
        f"{pictures}{more}base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def style(*further: str) -> str:
    """Return the style sheets as one, with `further` ones after them."""
    return "".join(_source(name) for name in (*STYLES, *further))


@cache
def script(names: tuple[str, ...] = SCRIPTS) -> str:
    """Return scripts as one."""
    parts = "\n".join(_source(name) for name in names)
    return f'(() => {{\n"use strict";\n{parts}\n}})();\n'


@cache
def markdown_library() -> str:
    """Return the script that reads Markdown, with its licences; see `templates/vendor`."""
    code, _, _ = _source("vendor/markdown-it.umd.min.js").partition("\n//# sourceMappingURL=")
    return f"/*\n{_source('vendor/LICENSES.txt')}*/\n{code}\n"


def _source(name: str) -> str:
    environment = _environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("pytest_tfgrpo.report.page"),
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
        thousands="{:,}".format,
        scenarios_of=scenarios_of,
        money=money,
        signed=signed,
        label=label,
        lessons=lessons_changed,
        heat=heat,
        spent=spent,
        part=lambda value: quote(str(value).encode("utf-8", "replace"), safe=""),
        shape=page_tables.shape,
        known_in=lambda id_, known: known.get(id_, {}),
    )
    environment.globals.update(
        trust=trust,
        gates=gates,
        outcomes=OUTCOMES,
        head=headline,
        settings_rows=page_tables.settings_rows,
        effect_columns=page_tables.effect_columns,
        reach_columns=page_tables.reach_columns,
        phase_name=phase_name,
        final_label=final_label,
        spending=spending,
        judge=judge,
        named=named_metrics,
        versus=compare_columns,
        compared=compare_lines,
    )
    return environment

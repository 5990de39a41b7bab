"""Prompts of promptfoo: texts, chats as JSON or YAML, and JSON for other servers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.suite.documents.document import Refused
from pytest_tfgrpo.suite.documents.json_text import parse_json
from pytest_tfgrpo.suite.documents.yaml_text import parse_yaml
from pytest_tfgrpo.suite.imports.chats import said
from pytest_tfgrpo.suite.imports.imported import Imported
from pytest_tfgrpo.suite.imports.promptfoo_values import VARIABLE, filled
from pytest_tfgrpo.suite.imports.values import asked, chat_of

_YAML_CHAT = re.compile(r"\s*-\s+['\"]?(?:role|content)['\"]?\s*:")
_JSON = re.compile(r"\s*(?:\[\s*\{|\{\s*\")")


def structure(template: str) -> Json:
    """Return what a template is before its variables are filled in: a text, or the value that it writes.

    Raises ValueError for a chat that cannot be read so.
    """
    if _YAML_CHAT.match(template):
        return _yaml_chat(template)
    if template.lstrip()[:1] not in ("[", "{"):
        return template
    try:
        return parse_json(template).value
    except Refused:
        if _JSON.match(template) and re.search(r"['\"](?:role|content)['\"]\s*:", template):
            raise ValueError("chats that are no JSON before their variables are filled in") from None
        return template


def _yaml_chat(template: str) -> Json:
    """Return a chat in YAML, whose variables may stand without quotes; raises ValueError."""
    mark = "variable"
    while mark in template:
        mark += "x"
    names = list(dict.fromkeys(match[0] for match in VARIABLE.finditer(template)))
    text = template
    for n, name in enumerate(names):
        text = text.replace(name, f"{mark}{n}e")
    try:
        value = parse_yaml(text).value
    except Refused as error:
        raise ValueError(f"chats that are no YAML before their variables are filled in: {error}") from None

    def restored(part: str) -> str:
        return re.sub(rf"{mark}([0-9]+)e", lambda match: names[int(match[1])], part)

    return filled(value, restored)


def task_of(
    found: Imported, template: Json, render_text: Callable[[str], str], where: str
) -> dict[str, Json]:
    """Return the task that a template becomes; raises ValueError where it is none."""
    if isinstance(template, str):
        return asked(found, render_text(template), where)
    value = filled(template, render_text)
    messages = chat_of(value)
    if messages is not None:
        return said(found, messages, where)
    found.note("prompts that are JSON, but no chat, are a text, indented as promptfoo sends it", where)
    return {"prompt": json.dumps(value, ensure_ascii=False, indent=2)}

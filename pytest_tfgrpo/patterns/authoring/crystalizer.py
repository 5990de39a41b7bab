"""The crystalizer: a pattern of a proven change, by a model where there is one, else by the template."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pytest_tfgrpo.core.errors import PatternError
from pytest_tfgrpo.core.texts.fences import fences
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.protocol import Request
from pytest_tfgrpo.patterns.authoring.prompt import SCHEMA, request_for
from pytest_tfgrpo.patterns.authoring.subject import PatternSubject
from pytest_tfgrpo.patterns.authoring.template import name_of, write_by_template
from pytest_tfgrpo.patterns.shelf.pattern import Pattern
from pytest_tfgrpo.patterns.shelf.pattern_file import SECTIONS, faults, stamped
from pytest_tfgrpo.patterns.shelf.screens import EXCERPT, PatternScreens

TRIES = 2
MOST_TAGS = 5

AskModel = Callable[[Request], str | None]
"""Returns what a model answers; None: the budget is used up, or there is no usable answer."""
TellReader = Callable[[str], None]


def _quiet(_text: str) -> None:
    pass


def crystalize(
    subject: PatternSubject,
    ask: AskModel | None,
    *,
    screens: PatternScreens | None = None,
    say: TellReader = _quiet,
) -> Pattern:
    """Return the pattern of a subject, stamped and screened; its place on the shelf gives it its id.

    A model is asked twice at most; then the template writes, and `say` is told why. Raises PatternError where
    the template can write nothing that passes the screens.
    """
    screens = screens or PatternScreens()
    plain = _without_bad_excerpt(write_by_template(subject, screens), screens, say)
    complaint = ""
    for _ in range(TRIES if ask is not None else 0):
        answer = ask(request_for(subject, complaint)) if ask is not None else None
        if answer is None:
            complaint = "the model gave no answer, or the budget is used up"
            break
        try:
            return _written(plain, answer, screens)
        except ValueError as error:
            complaint = str(error)
    if complaint:
        say(f"the template wrote the pattern, as the model could not: {complaint}")
    if found := _refused(plain, screens):
        raise PatternError(f"no pattern can be written of job {subject.evidence.job}: {found}")
    return plain


def _written(plain: Pattern, answer: str, screens: PatternScreens) -> Pattern:
    """Return the pattern with the texts of a model's answer; raises ValueError saying what is wrong."""
    value = _read(answer)
    texts = {key: _tidy(text) for key, text in value.items() if key != "tags"}
    sections: dict[str, Any] = {name: texts.pop(name) for name in SECTIONS.values()}
    body = replace(plain.body, **sections)
    tags = tuple(dict.fromkeys(tag.strip().lower() for tag in value["tags"]))[:MOST_TAGS]
    lines: dict[str, Any] = {key: " ".join(text.split()) for key, text in texts.items()}
    pattern = stamped(replace(plain, **lines, name=name_of(lines["title"]), body=body, tags=tags))
    if found := _refused(pattern, screens):
        raise ValueError(found)
    return pattern


def _read(answer: str) -> dict[str, Json]:
    blocks = fences(answer)
    try:
        value = load_json(blocks[-1].text if blocks else answer)
    except ValueError:
        raise ValueError("it is not one JSON object") from None
    if found := violations(SCHEMA, value):
        raise ValueError(f"{found[0].pointer or 'the answer'}: {found[0].message}")
    known: dict[str, Json] = value
    return known


def _tidy(text: str) -> str:
    rows = [row.rstrip() for row in text.replace("\r\n", "\n").strip().split("\n")]
    kept = [row for n, row in enumerate(rows) if row or rows[n - 1]]
    return "\n".join(kept)


def _refused(pattern: Pattern, screens: PatternScreens) -> str:
    """Return the faults of form and content of a pattern, in words."""
    found = faults(pattern) or screens.refusals(pattern)
    return "; ".join(f"{fault.place}: {fault.message}" for fault in found)


def _without_bad_excerpt(pattern: Pattern, screens: PatternScreens, say: TellReader) -> Pattern:
    """Return a pattern without its excerpt where that is not fit to be read by agents."""
    body = pattern.body
    alone = replace(pattern, body=replace(body, files=()))
    found = [
        one.message
        for one in faults(pattern)
        if one.message.startswith(EXCERPT) or one.place.startswith("files")
    ]
    found += [one.message for one in screens.refusals(alone) if one.place == EXCERPT]
    found += [why for path in body.files if (why := screens.refuse(path, pattern.domain))]
    if not found:
        return pattern
    say(f"the pattern has no excerpt: {found[0]}")
    return stamped(replace(pattern, body=replace(body, files=(), excerpt="")))

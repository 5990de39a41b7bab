"""Statements: the prompt of a scenario, from an issue, the commit message, or the tests that fail."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from pytest_tfgrpo.core.texts.text import cut, line
from pytest_tfgrpo.core.texts.words import content
from pytest_tfgrpo.harvest.fixes import FixCandidate, FixValidation, Statement
from pytest_tfgrpo.harvest.history.messages import REQUEST, change_text
from pytest_tfgrpo.harvest.prompt.issues_file import fixed_issues
from pytest_tfgrpo.harvest.prompt.leaked_lines import fixed_code, without_leaks
from pytest_tfgrpo.harvest.prompt.needed_names import needed_names
from pytest_tfgrpo.harvest.proof.fix_trees import FixTrees
from pytest_tfgrpo.privacy.redact import redact

WORDS = 8
"""Content words from which a text says something."""
MOST = 8000
"""Characters of a text that becomes a prompt."""
TESTS = 20
"""Failing tests that a prompt names."""
TASK = "Change the code in this folder accordingly. Tests that are not in it will check what you do."
MESSAGE = "commit message"
_LINK = re.compile(
    r"<?https?://[^\s>]+/(?:pull|pulls|commit|commits|compare|merge_requests|changeset)/[^\s>]*>?"
)

Rewrite = Callable[[str, tuple[str, ...]], str | None]
"""Takes a text and the failing tests, returns it rewritten; None: the budget is used up, or no use of it."""


def statement_of(
    candidate: FixCandidate,
    trees: FixTrees,
    validation: FixValidation,
    *,
    issues: Mapping[int, str] | None = None,
    rewrite: Rewrite | None = None,
) -> Statement:
    """Return the prompt of a proven fix: the first text that says something once lines of the fix are cut."""
    fixed, leaks = fixed_code(trees), list[str]()
    tests = _failing(validation)
    text = source = ""
    for given, called in _texts(candidate, issues or {}):
        cleaned, lost = without_leaks(_clean(given), fixed)
        leaks += lost
        if len(content(cleaned)) >= WORDS:
            text, source = cleaned, called
            break
    else:
        heading, source = _heading(candidate, issues or {})
        listed = "\n".join((*([_clean(heading), ""] if heading else []), "These tests fail:", "", *tests))
        text, lost = without_leaks(listed, fixed)
        leaks += lost
    if rewrite is not None and (rewritten := rewrite(text, tests)) is not None:
        better, lost = without_leaks(_clean(rewritten), fixed)
        leaks += lost
        if len(content(better)) >= WORDS:
            text, source = better, "model"
    whole = "\n\n".join((cut(text, MOST), TASK, *_names(needed_names(trees))))
    return Statement(text=whole, source=source, cut=tuple(dict.fromkeys(leaks)))


def _texts(candidate: FixCandidate, issues: Mapping[int, str]) -> Iterator[tuple[str, str]]:
    change = candidate.change
    for number in dict.fromkeys(n for said in (change.message, *change.merged) for n in fixed_issues(said)):
        if number in issues:
            yield issues[number], f"issue {number}"
    yield change_text(change), MESSAGE


def _heading(candidate: FixCandidate, issues: Mapping[int, str]) -> tuple[str, str]:
    """Return what stands above the failing tests, a brief issue or message, and the source of it all.

    The subject of a merge is none: it names a branch and its author.
    """
    for given, called in _texts(candidate, issues):
        if called != MESSAGE and given.strip():
            return given.strip(), f"{called}, failing tests"
    return change_text(candidate.change).partition("\n\n")[0], "failing tests"


def _clean(text: str) -> str:
    """Return a text without links to changes, which hold the fix, and numbers of requests."""
    return _LINK.sub("", REQUEST.sub("", text))


def _failing(validation: FixValidation) -> tuple[str, ...]:
    named = []
    for test in validation.fail_to_pass[:TESTS]:
        said = validation.messages.get(test, "")
        named.append(f"- {line(test, 200)}" + (f": {line(redact(said), 300)}" if said else ""))
    if (more := len(validation.fail_to_pass) - TESTS) > 0:
        named.append(f"- and {more} more")
    return tuple(named)


def _names(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        return ()
    return (f"Those tests use names that are not there yet: {', '.join(names)}.",)

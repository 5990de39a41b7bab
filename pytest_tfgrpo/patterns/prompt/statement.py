"""Statements: the prompt of a scenario, from an issue, the commit message, or the tests that fail."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from pytest_tfgrpo.core.redact import redact
from pytest_tfgrpo.core.text import cut, line
from pytest_tfgrpo.core.words import content
from pytest_tfgrpo.patterns.fixes import FixCandidate, FixValidation, HistoryChange, Statement
from pytest_tfgrpo.patterns.prompt.issues_file import fixed_issues
from pytest_tfgrpo.patterns.prompt.leaked_lines import fixed_code, without_leaks
from pytest_tfgrpo.patterns.prompt.needed_names import needed_names
from pytest_tfgrpo.patterns.proof.fix_trees import FixTrees

WORDS = 8
"""Content words from which a text says something."""
MOST = 8000
"""Characters of a text that becomes a prompt."""
TESTS = 20
"""Failing tests that a prompt names."""
TASK = "Change the code in this folder accordingly. Tests that are not in it will check what you do."
MESSAGE = "commit message"
_TRAILER = re.compile(
    r"^(?:(?:[A-Z][a-z]+(?:-[a-z]+)*-by|Cc|Change-Id|Bug|Bug-Url|Refs?|Closes|Fixes|Resolves|PR-URL|Issue|Ticket|"
    r"git-svn-id|Co-Authored-By|Co-authored-by|Author|Thanks-to)\s*:.*"
    r"|\(cherry picked from commit [0-9a-f]+\)|See merge request .*|PR #\d+\.?|(?:fixup|squash|amend)! .*"
    r"|\W*Generated (?:with|by) \[[^\]]*\]\(\S+\)"
    r"|Merge (?:pull request|branch|remote-tracking branch) .*)$",
    re.IGNORECASE,
)
_MERGE = re.compile(
    r"Merged?(?: in)?(?: (?:pull request|pr|(?:remote-tracking |remote )?branch(?:es)?|tag|commit) .*"
    r"| \S+(?: into \S+.*| (?:to|in|with|from) \S+| \(pull request #\d+\).*)?)?",
    re.IGNORECASE,
)
"""The subject of a merge that names branches, and with them people."""
_LISTED = re.compile(r"\* \S+:(?: \(\d+ commits\))?")
"""What git writes above the subjects of a merged branch."""
_CONFLICTS = re.compile(r"^(?:# ?)?Conflicts:\n(?:#?[ \t]+\S.*(?:\n|\Z))*", re.MULTILINE)
"""What git writes into the message of a merge: names of files, which would say where the fix lies."""
_PERSON = re.compile(
    r"\b((?:thanks(?: to)?|(?:kudos|credits?|according) to|(?:suggested|reported|fixed|found|patch) by|cc)"
    r"[:,]?\s+)@[A-Za-z0-9][\w-]*(?:(?:,| and|, and) @[A-Za-z0-9][\w-]*)*",
    re.IGNORECASE,
)
"""A user who is named; other words after an @ are decorators."""
_MAIL = re.compile(r" ?\(by @[\w-]+\)| ?<[^<>\s@]+@[^<>\s@]+>")
_REQUEST = re.compile(r"\s{0,9}\((?:(?:[\w.-]+/[\w.-]+)?#|gh-)\d+\)", re.IGNORECASE)
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


def message_text(message: str) -> str:
    """Return what a commit message says, without trailers, numbers of requests, links to it, and people."""
    rows = [row.rstrip() for row in message.replace("\r\n", "\n").split("\n")]
    told = [_MAIL.sub("", _PERSON.sub(r"\1a user", row)) for row in rows if not _TRAILER.match(row.strip())]
    kept = "\n".join(told)
    return re.sub(r"\n{3,}", "\n\n", kept).strip()


def change_text(change: HistoryChange) -> str:
    """Return what the message of a change says; that of a merge has no subject, but what was merged says.

    A line that was said before is left out.
    """
    if not change.is_merge:
        return message_text(change.message)
    subject, _, body = change.message.lstrip().replace("\r\n", "\n").partition("\n")
    own = body if _MERGE.fullmatch(subject.strip()) else f"{subject}\n{body}"
    rows = _CONFLICTS.sub("", own).split("\n")
    texts = [message_text("\n".join(row for row in rows if not _LISTED.fullmatch(row.strip())))]
    said = {_bare(row) for row in texts[0].split("\n")}
    for message in change.merged:
        new = [
            row for row in message_text(message).split("\n") if not (bare := _bare(row)) or bare not in said
        ]
        said.update(map(_bare, new))
        texts.append(re.sub(r"\n{3,}", "\n\n", "\n".join(new)).strip())
    return "\n\n".join(text for text in texts if text)


def _bare(row: str) -> str:
    """Return a line without the marks of a list and numbers of requests, in one case."""
    return _REQUEST.sub("", row).strip(" \t*-+.").casefold()


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
    return _LINK.sub("", _REQUEST.sub("", text))


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

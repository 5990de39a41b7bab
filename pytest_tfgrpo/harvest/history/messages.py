"""Messages of commits: what they say of a change, without people, branches and numbers of requests."""

from __future__ import annotations

import re
from dataclasses import replace

from pytest_tfgrpo.harvest.fixes import HistoryChange

_TRAILER = re.compile(
    r"^(?:(?:[A-Z][a-z]+(?:-[a-z]+)*-by|Cc|Change-Id|Bug|Bug-Url|Refs?|Closes|Fixes|Resolves|PR-URL|Issue|Ticket|"
    r"git-svn-id|Co-Authored-By|Co-authored-by|Author|Thanks-to)\s*:.*"
    r"|\(cherry picked from commit [0-9a-f]+\)|See merge request .*|PR #\d+\.?|(?:fixup|squash|amend)! .*"
    r"|\W*Generated (?:with|by) \[[^\]]*\]\(\S+\)"
    r"|Merge (?:pull request|branch|remote-tracking branch) .*"
    r"|Merged? in \S+(?: \(pull request #\d+\)|/\S+ from \S+).*|(?:auto|rollup) merge of #\d+ .*)$",
    re.IGNORECASE,
)
_MERGE = re.compile(
    r"Merg(?:ed?|ing)(?: in| with| from)?"
    r"(?: (?:pull request|pr|(?:remote-tracking |remote )?branch(?:es)?|tag|commit) .*"
    r"| \S+(?: into \S+.*| (?:to|in|with|from) \S+| \(pull request #\d+\).*)?)?",
    re.IGNORECASE,
)
"""The subject of a merge that names branches, and with them people."""
_TITLED = re.compile(r"^(?:Merged? )?(?:in )?(?:pull request|PR|merge request|MR) [#!]?\d+: +", re.IGNORECASE)
"""What stands before the title of a request in a subject."""
_REVIEWED = re.compile(r"^\d+: (.+) r=\S+(?: a=\S+)?$")
"""The title of a request between its number and those who reviewed and wrote it, as merge bots write it."""
_BRANCH = re.compile(r"\S*[/@~:]\S+|'[^']*'")
"""A word that may name a branch or a person, in the subject of a merge."""
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
REQUEST = re.compile(r"\s{0,9}\((?:(?:[\w.-]+/[\w.-]+)?#|gh-)\d+\)", re.IGNORECASE)
"""The number of a request, as it stands behind a subject."""
_NUMBER = re.compile(r"(?<!\w)[#!](\d{1,9})\b")
_BRIEF = 2000
"""Characters of a message in which its title is looked for."""


def message_text(message: str) -> str:
    """Return what a commit message says, without trailers, numbers of requests, links to it, and people."""
    rows = [row.rstrip() for row in message.replace("\r\n", "\n").split("\n")]
    kept = "\n".join(_without_people(row) for row in rows if not _TRAILER.match(row.strip()))
    return re.sub(r"\n{3,}", "\n\n", kept).strip()


def change_text(change: HistoryChange) -> str:
    """Return what the message of a change says; that of a merge has no subject, but what was merged says.

    A line that was said before is left out.
    """
    if not change.is_merge:
        return message_text(change.message)
    subject, _, body = change.message.lstrip().replace("\r\n", "\n").partition("\n")
    subject = _TITLED.sub("", subject.strip())
    own = body if _MERGE.fullmatch(subject) else f"{subject}\n{body}"
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


def title_of(change: HistoryChange) -> str:
    """Return the first line that the message of a change says, of a merge without names of branches.

    A merge that says nothing is called by its number, if it has one.
    """
    message = change.message.lstrip()[:_BRIEF].replace("\r\n", "\n")
    if change.is_merge:
        subject, line, body = message.partition("\n")
        subject = _TITLED.sub("", subject)
        message = (subject if _MERGE.fullmatch(subject) else _BRANCH.sub("", subject)) + line + body
    brief = replace(change, message=message, merged=tuple([text[:_BRIEF] for text in change.merged[:1]]))
    said, number = change_text(brief).partition("\n")[0], _NUMBER.search(change.message[:_BRIEF])
    return said or (f"merge {number[1]}" if number else "merge" if change.is_merge else "")


def _without_people(row: str) -> str:
    """Return a line of a message without what names people in it."""
    titled = _REVIEWED.sub(r"\1", _TITLED.sub("", row))
    return _MAIL.sub("", _PERSON.sub(r"\1a user", titled))


def _bare(row: str) -> str:
    """Return a line without the marks of a list and numbers of requests, in one case."""
    return REQUEST.sub("", row).strip(" \t*-+.").casefold()

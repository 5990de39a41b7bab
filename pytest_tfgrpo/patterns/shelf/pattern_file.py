"""Files of patterns: Markdown with front matter, written in one form and read strictly.

What a file may hold is narrow, because agents and people read it later: no character that nobody sees, no
heading or fence but its own, no text beyond its limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

from pytest_tfgrpo.core.errors import PatternError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.schema import pointer, violations
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.core.wire.wire import Json, from_wire, leaves, to_wire
from pytest_tfgrpo.harvest.suite.scenario_text import mapping_text
from pytest_tfgrpo.patterns.shelf.pattern import Pattern, PatternBody
from pytest_tfgrpo.suite.documents.document import Refused, read_text
from pytest_tfgrpo.suite.documents.yaml_text import parse_yaml

FILE_MAX = 200_000
"""Bytes of a file that is read."""
LESSON_WORDS = 32
BODY_WORDS = 500
EXCERPT_LINES = 40
EXCERPT_COLUMNS = 400
HIDDEN = 20
"""Most lines that are named for what nobody sees in them."""
EDGE = "---"
SECTIONS = {
    "Problem": "problem",
    "Solution": "solution",
    "Rationale": "rationale",
    "When not to use": "when_not",
}
"""Headings, in their order, and the fields of the body."""
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
"""Characters that count as printable, and that nobody sees."""
_FENCE = re.compile(r"(`{3,}|~{3,})(.*)")
_LANGUAGE = re.compile(r"[a-z0-9+-]{0,20}")
_LANGUAGES = {
    **{
        ".py": "python",
        ".pyi": "python",
        ".js": "js",
        ".mjs": "js",
        ".cjs": "js",
        ".jsx": "jsx",
        ".ts": "ts",
    },
    **{".tsx": "tsx", ".go": "go", ".rs": "rust", ".java": "java", ".rb": "ruby", ".sh": "sh", ".sql": "sql"},
    **{".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml"},
}
_SHOWN = ("name", "title", "domain", "tags", "polarity", "lesson", "description")


@dataclass(frozen=True, kw_only=True, slots=True)
class PatternFault:
    """One thing that is wrong with a pattern."""

    place: str
    """Key of the front matter, or heading of a section."""
    message: str


def stamp_of(pattern: Pattern) -> str:
    """Return the stamp of all that a reader of a pattern gets: equal texts have equal stamps."""
    return stamp([[to_wire(getattr(pattern, name)) for name in _SHOWN], to_wire(pattern.body)])


def stamped(pattern: Pattern) -> Pattern:
    """Return a pattern with the stamp that its texts have now."""
    return replace(pattern, stamp=stamp_of(pattern))


def write_pattern(pattern: Pattern) -> str:
    """Return the text of a pattern's file; raises PatternError where it could not be read back."""
    if found := faults(pattern):
        told = "; ".join(f"{fault.place}: {fault.message}" for fault in found)
        raise PatternError(f"the pattern {pattern.name!r} cannot be written: {told}")
    front = _front(pattern)
    return f"{EDGE}\n{mapping_text(front)}{EDGE}\n\n{body_text(pattern.body)}"


def body_text(body: PatternBody) -> str:
    """Return the sections of a pattern in Markdown."""
    parts = []
    for heading, name in SECTIONS.items():
        parts += [f"## {heading}", getattr(body, name)]
        if name == "solution" and body.excerpt:
            fence = _fence_around(body.excerpt)
            parts.append(f"{fence}{_language(body.files)}\n{body.excerpt}\n{fence}")
    return "\n\n".join(parts) + "\n"


def read_pattern(path: Path) -> Pattern:
    """Return the pattern of a file; raises PatternError naming file, line and key."""
    try:
        text = read_text(path, FILE_MAX)
    except Refused as refused:
        raise PatternError(f"{path}:{refused.problem.line}: {refused}") from None
    return parse_pattern(text, str(path))


def parse_pattern(text: str, where: str) -> Pattern:
    """Return the pattern that a text is; raises PatternError, which names `where`, the line and the key.

    Line ends of Windows are read as usual ones.
    """
    text = text.replace("\r\n", "\n")
    rows = text.split("\n")
    if hidden := [f"{where}:{n}: {why}" for n, row in enumerate(rows, 1) if (why := _unfit(row, "\t"))]:
        raise PatternError("\n".join(hidden[:HIDDEN]))
    if rows[0].rstrip() != EDGE or EDGE not in rows[1:]:
        raise PatternError(
            f"{where}:1: it does not start with front matter; put its keys between two lines {EDGE!r}"
        )
    end = rows.index(EDGE, 1)
    try:
        front = parse_yaml("\n".join(["", *rows[1:end]]) + "\n")
    except Refused as refused:
        problem = refused.problem
        raise PatternError(
            f"{where}:{problem.line}: {_key(problem.path)}{problem.message}; correct it"
        ) from None
    if found := violations("pattern", front.value):
        told = [f"{where}:{front.line(one.path)}: {_key(one.path)}{one.message}" for one in found]
        raise PatternError("\n".join(told))
    body = _read_body(rows, end + 1, where)
    pattern = _pattern(front.value, body, where)
    if wrong := faults(pattern):
        lines = {
            heading: n + 1 for n, row in enumerate(rows) if (heading := row.removeprefix("## ")) in SECTIONS
        }
        told = [
            f"{where}:{lines.get(one.place) or front.line((one.place,))}: {one.place}: {one.message}"
            for one in wrong
        ]
        raise PatternError("\n".join(told))
    return pattern


def faults(pattern: Pattern) -> list[PatternFault]:
    """Return what is wrong with the form of a pattern; what its texts say is for the screens."""
    found = [
        PatternFault(place=_key(one.path)[:-2], message=one.message)
        for one in violations("pattern", _front(pattern))
    ]
    known = {fault.place for fault in found}
    return found + [fault for fault in _text_faults(pattern) if fault.place not in known]


def _text_faults(pattern: Pattern) -> Iterator[PatternFault]:
    for name, value in _front(pattern).items():
        why = _unfit("".join(leaf for leaf in leaves(value) if isinstance(leaf, str)), "")
        if not why and name in ("title", "domain", "lesson", "description"):
            why = _not_one_line(value)
        if why:
            yield PatternFault(place=name, message=why)
    if (count := len(pattern.lesson.split())) > LESSON_WORDS:
        yield PatternFault(place="lesson", message=f"it has {count} words; shorten it to {LESSON_WORDS}")
    yield from _body_faults(pattern.body)


def _body_faults(body: PatternBody) -> Iterator[PatternFault]:
    for heading, name in SECTIONS.items():
        text = getattr(body, name)
        if why := section_fault(text):
            yield PatternFault(place=heading, message=why)
    count = sum(len(getattr(body, name).split()) for name in SECTIONS.values())
    if count > BODY_WORDS:
        yield PatternFault(
            place="Problem", message=f"the sections have {count} words; shorten them to {BODY_WORDS}"
        )
    if why := _unfit(body.excerpt, "\n\t") or _not_an_excerpt(body.excerpt):
        yield PatternFault(place="Solution", message=f"excerpt: {why}")
    if body.excerpt and not body.files:
        yield PatternFault(place="files", message="name the files that the excerpt comes from")


def is_seen(character: str) -> bool:
    """Return whether people see a character; of blanks the usual one counts."""
    return character.isprintable() and not _UNSEEN.match(character)


def section_fault(text: str) -> str:
    """Return why a text cannot be a section; "" if it can."""
    return _unfit(text, "\n") or _not_a_section(text)


def _unfit(text: str, allowed: str) -> str:
    """Return which character of a text nobody sees, or "" if there is none."""
    for character in text:
        if character not in allowed and not is_seen(character):
            return f"it contains the character U+{ord(character):04X}, which nobody sees; take it out"
    return ""


def _not_one_line(text: str) -> str:
    return "" if text == " ".join(text.split()) else "it has blanks at its ends or in a row; take them out"


def _not_a_section(text: str) -> str:
    if not text.strip():
        return "it says nothing; write it"
    if text != text.strip() or "\n\n\n" in text or any(row != row.rstrip() for row in text.split("\n")):
        return "it has blanks at the ends of lines, or empty lines in a row; take them out"
    for row in text.split("\n"):
        if re.match(r" {0,3}(#{1,6}(\s|$)|`{3}|~{3})", row):
            return f"{short(row)} is a heading or a fence; sections have none, only the excerpt is fenced"
        if re.fullmatch(r"[-=]{3,}", row):
            return f"it has the line {short(row)}, which would make a heading or an edge; take it out"
    return ""


def _not_an_excerpt(text: str) -> str:
    rows = text.split("\n")
    if len(rows) > EXCERPT_LINES:
        return f"it has {len(rows)} lines; shorten it to {EXCERPT_LINES}"
    if max(map(len, rows)) > EXCERPT_COLUMNS:
        return f"it has a line of {max(map(len, rows))} characters; a line has at most {EXCERPT_COLUMNS}"
    if text and (not rows[0].strip() or not rows[-1].strip() or any(row != row.rstrip() for row in rows)):
        return "it has blanks at the ends of lines, or starts or ends with an empty one; take them out"
    return ""


def _front(pattern: Pattern) -> Mapping[str, Json]:
    """Return the front matter in the order of its keys; what is empty is left out."""
    wire = to_wire(pattern)
    body = wire.pop("body")
    keys = (
        "id",
        "name",
        "title",
        "domain",
        "tags",
        "polarity",
        "lesson",
        "description",
        "status",
        "evidence",
    )
    ordered = {key: wire[key] for key in keys}
    ordered["files"] = body["files"]
    ordered |= {key: wire[key] for key in ("trial", "stamp", "parents", "reintroduced") if key in wire}
    return {key: value for key, value in ordered.items() if value not in ([], None)}


def _pattern(front: Mapping[str, Json], body: PatternBody, where: str) -> Pattern:
    wire = {key: value for key, value in front.items() if key != "files"}
    wire["body"] = to_wire(replace(body, files=tuple(front.get("files", ()))))
    try:
        return from_wire(Pattern, wire)
    except ValueError as error:  # numbers beyond what the schema limits
        raise PatternError(f"{where}:1: {error}") from None


def _read_body(rows: list[str], start: int, where: str) -> PatternBody:
    """Return the sections below the front matter, whose first line has the index `start`."""
    found: dict[str, list[str]] = {}
    excerpt: list[str] | None = None
    fence, section, after_fence = "", "", False
    for n in range(start, len(rows)):
        row = rows[n]
        at = f"{where}:{n + 1}"
        if fence:
            if row == fence:
                fence, after_fence = "", True
            else:
                assert excerpt is not None
                excerpt.append(row)
        elif row.startswith("## "):
            section, after_fence = _next_section(row, tuple(found), at), False
            found[section] = []
        elif section == "Solution" and (opened := _FENCE.fullmatch(row)):
            if excerpt is not None or not _LANGUAGE.fullmatch(opened[2]):
                raise PatternError(f"{at}: {short(row)} opens no excerpt; the solution ends with one fence")
            fence, excerpt = opened[1], []
        elif not section or after_fence:
            if row.strip():
                raise PatternError(f"{at}: {short(row)} stands outside of the sections; move it into one")
        else:
            found[section].append(row.rstrip())
    if fence or len(found) < len(SECTIONS):
        missing = (
            f"the fence {fence!r} is not closed"
            if fence
            else f"the section '## {_missing(found)}' is missing"
        )
        raise PatternError(f"{where}:{len(rows)}: {missing}; add it")
    texts = {SECTIONS[heading]: "\n".join(lines).strip("\n") for heading, lines in found.items()}
    return PatternBody(
        problem=texts["problem"],
        solution=texts["solution"],
        rationale=texts["rationale"],
        when_not=texts["when_not"],
        excerpt="\n".join(excerpt or ()),
    )


def _next_section(row: str, known: tuple[str, ...], at: str) -> str:
    heading, expected = row.removeprefix("## ").strip(), _missing(known)
    if heading != expected:
        wanted = f"'## {expected}' comes here" if expected else "the last section is '## When not to use'"
        raise PatternError(f"{at}: {short(row)} is no section at this place; {wanted}")
    return heading


def _missing(known: Iterable[str]) -> str:
    return next((heading for heading in SECTIONS if heading not in set(known)), "")


def _fence_around(text: str) -> str:
    """Return a fence that no line of a text closes."""
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    return "`" * max(3, longest + 1)


def _language(files: tuple[str, ...]) -> str:
    return _LANGUAGES.get(PurePosixPath(files[0]).suffix, "") if files else ""


def _key(path: tuple[str | int, ...]) -> str:
    return f"{pointer(path)[1:]}: " if path else ""

"""The text of a harvested scenario: YAML that a person reads and edits, and that reads back as it was."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pytest_tfgrpo.core.scenarios import Split
from pytest_tfgrpo.core.wire.wire import Json

SPLIT = re.compile(r"^split: (train|dev|eval)[ \t]*$", re.MULTILINE)
"""The line of a scenario file that a later harvest may change."""
FAMILY = re.compile(r"^([\"']?)family\1[ \t]*:[ \t]*(.*?)[ \t]*$\n?", re.MULTILINE)
"""The line with a scenario's family, however a person writes it."""
PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
RESERVED = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
STEP = "  "


def scenario_text(value: Mapping[str, Json], heading: str) -> str:
    """Return the YAML of a scenario below a line of comment."""
    return f"# {heading}\n{mapping_text(value)}"


def mapping_text(value: Mapping[str, Json]) -> str:
    """Return the YAML of an object, a key a line."""
    return "\n".join(_mapping(value, "")) + "\n"


def with_split(text: str, split: Split) -> str | None:
    """Return the text of a scenario in another split; None where it has no line that says one."""
    return SPLIT.sub(f"split: {split}", text, count=1) if SPLIT.search(text) else None


def split_in(text: str) -> str | None:
    """Return the split that a scenario's text names on a line of its own."""
    found = SPLIT.search(text)
    return found[1] if found else None


def family_in(text: str) -> str | None:
    """Return the family that a scenario's text names on a line of its own, without quotes."""
    found = FAMILY.search(text)
    return found[2].strip("\"'") if found else None


def with_family(text: str, family: str | None) -> str:
    """Return the text of a scenario in another family, or in none; a first one stands below its split."""
    row = "" if family is None else f"family: {_scalar(family)}\n"
    if FAMILY.search(text):
        return FAMILY.sub(lambda _: row, text, count=1)
    return SPLIT.sub(lambda found: f"{found[0]}\n{row}".removesuffix("\n"), text, count=1)


def _mapping(value: Mapping[str, Json], indent: str) -> Iterator[str]:
    for key, item in value.items():
        yield from _item(f"{indent}{_scalar(key)}:", item, indent)


def _item(start: str, item: Json, indent: str) -> Iterator[str]:
    if isinstance(item, Mapping) and item:
        yield start
        yield from _mapping(item, indent + STEP)
    elif isinstance(item, Sequence) and not isinstance(item, str) and item:
        yield start
        for part in item:
            yield from _entry(part, indent + STEP)
    elif isinstance(item, str) and _is_block(item):
        yield f"{start} |{'' if item.endswith(chr(10)) else '-'}"
        yield from (indent + STEP + row if row else "" for row in item.removesuffix("\n").split("\n"))
    else:
        yield f"{start} {_scalar(item)}"


def _entry(part: Json, indent: str) -> Iterator[str]:
    """Yield one item of a list; a mapping begins on the line of its dash."""
    if isinstance(part, Mapping) and part:
        rows = list(_mapping(part, indent + STEP))
        yield f"{indent}- {rows[0].removeprefix(indent + STEP)}"
        yield from rows[1:]
    else:
        yield f"{indent}- {_scalar(part)}"


def _is_block(text: str) -> bool:
    """Return whether a text reads back from a literal block: printable, no odd space at its ends."""
    rows = text.removesuffix("\n").split("\n")
    return (
        len(rows) > 1
        and rows[0] != ""
        and not rows[0][0].isspace()
        and rows[-1].strip() != ""
        and all(row.isprintable() and (row.strip() or not row) for row in rows)
        and "\ufeff" not in text
    )


def _scalar(value: Json) -> str:
    if isinstance(value, str):
        return value if PLAIN.fullmatch(value) and value.lower() not in RESERVED else _quoted(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quoted(k)}: {_scalar(v)}" for k, v in value.items()) + "}"
    return "[" + ", ".join(map(_scalar, value)) + "]"


def _quoted(text: str) -> str:
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable() and character != "\ufeff":
        return character
    code = ord(character)
    known = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character)
    return known or (f"\\x{code:02x}" if code < 0x100 else f"\\U{code:08x}")

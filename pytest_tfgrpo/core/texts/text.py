"""Text from models and scenarios made safe to show: no secrets, no terminal codes, no control characters."""

from __future__ import annotations

import math
import re
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_tfgrpo.core.texts.named_values import phase_label
from pytest_tfgrpo.privacy.redact import redact

COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_COMMAND = re.compile(r"^([^\S\n]*):(?=:)|(#)#(?=\w*\[)", re.MULTILINE)
"""What starts a command to a CI service in the log of a job: ``::name`` on a line, ``##[`` anywhere."""


TRACEBACK = "Traceback (most recent call last)"
STDERR = "its stderr ends:"
"""What a message about a program says before the end of its stderr, which may start amid a traceback."""
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?::|$)")
"""The line of a traceback with type and message; those above it are indented."""
_FRAME = re.compile(r'File "[^"\n]*", line \d+')
_SLACK = 400
"""Characters beyond a cut that are searched for secrets: half of one has no known shape."""


def line(text: str, limit: int | None = None) -> str:
    """Return `text` as one printable line of at most `limit` characters."""
    head = text if limit is None else text[: 8 * limit]  # a megabyte need not be cleaned to show its start
    shown = redact(text) if limit is None else redact(text[: 8 * limit + _SLACK])[: 8 * limit]
    flat = " ".join(_fit_for_readers(shown).split())
    if limit is None or (len(flat) <= limit and len(head) == len(text)):
        return flat
    return flat[: max(0, limit - 3)].rstrip() + "..."


def block(text: str, limit: int | None = None) -> str:
    """Return `text` printable, lines kept; past `limit` characters it notes how much was omitted.

    Secrets are taken out and colour codes vanish; other unfit characters are shown as escapes, so that
    nothing is hidden from a reader.
    So is the start of a command to a CI service, which would take an agent's answer for the job's own words.
    """
    if limit is None or len(text) <= limit:
        return _fit_for_readers(redact(text))
    start = redact(text[: limit + _SLACK])[:limit]
    return f"{_fit_for_readers(start)}\n... {len(text) - limit} more characters"


def gist(text: str, limit: int | None = None) -> str:
    """Return what an error says as one line: of a traceback the line with the last exception."""
    if TRACEBACK not in text and _FRAME.search(text) is None:
        return line(text, limit)
    before, mark, _ = text.partition(STDERR)
    before = before + mark if mark else text.partition(TRACEBACK)[0].strip()
    before = "" if before == text.strip() else before
    lines = [row for row in text.splitlines() if row.strip()]
    last = next((row for row in reversed(lines) if _EXCEPTION.match(row)), lines[-1])
    return line(f"{before} {last}" if before and before not in last else last, limit)


def _fit_for_readers(text: str) -> str:
    plain = COLOUR.sub("", text.replace("\r\n", "\n"))
    return _without_commands(plain if plain.isprintable() else "".join(map(_fit, plain)))


def _without_commands(text: str) -> str:
    if "::" in text or "##" in text:
        return _COMMAND.sub(lambda m: f"{m[1]}\\x3a" if m[2] is None else "#\\x23", text)
    return text


def cut(text: str, limit: int) -> str:
    """Return `text` with its middle left out beyond `limit` characters; it is not made printable."""
    if len(text) <= limit:
        return text
    head, tail = limit - limit // 3, limit // 3
    return joined(text[:head], len(text) - head - tail, text[len(text) - tail :])


def joined(start: str, left_out: int, end: str) -> str:
    """Return the two ends of a text whose middle is left out."""
    return f"{start} (... {left_out} characters left out ...) {end}"


def _fit(character: str) -> str:
    if character.isprintable() or character in "\n\t":
        return character
    if unicodedata.category(character) == "Zs":
        return " "
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def pathless(text: str) -> str:
    """Return the name alone of what is an absolute path, which is nobody's business; else the text."""
    return text.rstrip("/").rpartition("/")[2] if text.startswith("/") else text


def number(value: float | None, digits: int = 3) -> str:
    """Return a score for a table; ``-`` when it is unknown."""
    return "-" if value is None else f"{value:.{digits}f}"


def count(value: float | None) -> str:
    """Return a large count in at most five characters: ``950``, ``12.3k``, ``1.2M``."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value is not None and value >= limit:
            return f"{value / limit:.{1 if value < 100 * limit else 0}f}{unit}"
    return "-" if value is None else f"{value:.0f}"


def plural(n: int, what: str, one: str = "", many: str = "") -> str:
    """Return a number of things, with its verb: ``1 lesson is``, ``2 lessons are``."""
    return f"{n} {what} {one}".rstrip() if n == 1 else f"{n} {what}s {many}".rstrip()


def scenarios_of(n: int, families: int, just_these: bool = False) -> str:
    """Return how many scenarios there are, and of how many families where some share one.

    `just_these` says that the families are too few to speak of scenarios like them.
    """
    shared = "" if families == n else " of one family" if families == 1 else f" of {families} families"
    return f"{plural(n, 'scenario')}{shared}{' (says nothing of others)' if just_these else ''}"


def money(value: float | None) -> str:
    """Return dollars; ``?`` when they are unknown, ``<$0.0001`` when four digits would not show them."""
    if value is None:
        return "?"
    if 0 < value < 0.00005:
        return "<$0.0001"
    return f"${value:.2f}" if value >= 0.01 or value == 0 else f"${value:.4f}"


def price(value: float | None) -> str:
    """Return the dollars of one call with three digits that tell: ``$0.0002``, ``$0.0125``, ``$1.25``."""
    if value is None:
        return "?"
    if 0 < value < 1e-9:
        return f"${value:.3g}"
    whole, _, parts = (
        f"{value:.{2 if value == 0 or value >= 1 else 2 - math.floor(math.log10(value))}f}".partition(".")
    )
    return f"${whole}.{parts.rstrip('0').ljust(2, '0')}"


def duration(value_ms: float | None) -> str:
    """Return a latency in a unit that fits it; ``-`` when there is none."""
    if value_ms is None:
        return "-"
    if value_ms >= 1000:
        return f"{value_ms / 1000:.{1 if value_ms < 100_000 else 0}f} s"
    return f"{value_ms:.{1 if value_ms < 10 else 0}f} ms"


def interval(ci95: Sequence[float] | None, form: str = ".3f") -> str:
    """Return an interval; ``-`` when there is none."""
    return "-" if ci95 is None else f"{ci95[0]:{form}} to {ci95[1]:{form}}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Return the lines of a table: columns two spaces apart, the first `left` ones flush left."""
    grid = [list(header), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in grid
    ]


def wrapped(text: str, width: int, indent: str = "", hanging: str | None = None) -> list[str]:
    """Return `text` as lines of at most `width` characters; `hanging` indents all lines but the first.

    No line starts with a command to a CI service, which one of `text` may be amid a line.
    """
    found = textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_on_hyphens=False,
    )
    return [_without_commands(row) for row in found]


def few(names: Sequence[str], limit: int = 5) -> str:
    """Return the first `limit` of some names, and that there are more."""
    return ", ".join(line(name, 120) for name in names[:limit]) + (", ..." if len(names) > limit else "")


def label(row: Mapping[str, Any]) -> str:
    """Return the name of the sweep or epoch of a report's row."""
    return phase_label(row["epoch"], row["mode"])


def cost(quantity: Mapping[str, Any], calls: int) -> str:
    """Return a summed cost; ``+`` means that some of it is unknown."""
    return money(quantity["sum"]) + ("+" if 0 < quantity["n"] < calls else "")


def signed(value: float | None) -> str:
    """Return a difference with its sign; ``-`` when it is unknown."""
    return "-" if value is None else f"{round(value, 3) + 0.0:+.3f}"  # no -0.000

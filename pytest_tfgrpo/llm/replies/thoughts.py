"""Thoughts: reasoning that a server leaves in the text of a reply, parted from the answer.

Only blocks at the beginning count: a tag further on, in code or in quotes is part of what is answered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, TypeAlias

from pytest_tfgrpo.core.python.lazy_pattern import lazy_pattern

TagPair: TypeAlias = tuple[str, str]
"""How a block of thoughts begins and ends."""
ThoughtTags: TypeAlias = bool | tuple[TagPair, ...]
"""True: the forms that are known; False: all text is the answer; pairs: these alone."""

MAX_BLOCKS = 32
"""Blocks at the beginning of one reply that are looked at."""
MAX_TAGS = 2_000
"""Tags in one block that are looked at."""
LINE = 200
"""Characters before and after a tag in which code around it is looked for."""
NAME = r"(?:[a-z]\w{0,20}[:_])?(?:think|thinking|thoughts?|reasoning|scratchpad|antthinking)"
"""Neither ``analysis`` nor ``reflection`` or ``reason``, which prompts ask for as parts of the answer."""
XML_OPEN = lazy_pattern(rf"<({NAME})(?:\s[^<>]{{0,100}})?>", re.IGNORECASE)
XML_CLOSE = lazy_pattern(rf"</({NAME})\s*>", re.IGNORECASE)
DETAILS_OPEN = lazy_pattern(r"<details\s(?:[^<>]{0,200}\s)?type=[\"']?reasoning\b[^<>]{0,200}>")
DETAILS = lazy_pattern(r"<details\b[^<>]{0,400}>|(?P<end></details>)")
"""Open WebUI."""
SUMMARY = lazy_pattern(r"\s*<summary>[^<>]{0,200}</summary>")
PAIRS: tuple[TagPair, ...] = (
    ("[THINK]", "[/THINK]"),
    ("[THINKING]", "[/THINKING]"),
    ("[REASONING]", "[/REASONING]"),
    ("[think]", "[/think]"),
    ("[thinking]", "[/thinking]"),
    ("[reasoning]", "[/reasoning]"),
    ("<|think|>", "<|/think|>"),
    ("<|thinking|>", "<|/thinking|>"),
    ("&lt;think&gt;", "&lt;/think&gt;"),
    ("&lt;thinking&gt;", "&lt;/thinking&gt;"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<unused94>thought", "<unused95>"),
    ("<|channel>thought", "<channel|>"),
)
"""Besides tags of XML: Magistral, Kimi, Sky-T1, Command A, Apertus, MedGemma, Gemma, other brackets."""
ANSWERS: tuple[TagPair, ...] = (
    ("<|begin_of_solution|>", "<|end_of_solution|>"),
    ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    ("<|START_TEXT|>", "<|END_TEXT|>"),
    ("[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]"),
)
"""What some of them put around the answer that follows."""
STEPS = lazy_pattern(
    r"(?:Here are my reasoning steps:)?(.*?)(?<![`\"'])(?=\[BEGIN FINAL RESPONSE\](?![`\"']))", re.DOTALL
)
"""How Apriel parts the two, whose template may have put the beginning into the prompt."""
END_MARKS = (
    *(
        "<|im_end|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<end_of_turn>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<|end|>",
    ),
    *("<｜end▁of▁sentence｜>", "</s>"),
)
"""What templates put at the end of a turn, and some servers leave there."""
PROSE = lazy_pattern(r"Here(?:'s| is) my thought process:(.*?)Here(?:'s| is) my response:", re.DOTALL)
"""How Granite 3 parts the two."""
SPELLED = lazy_pattern(r"analysis(.*?)assistant(?:commentary)?final(?:json)?", re.DOTALL)
"""The harmony format after its special tokens were left out."""
HARMONY = lazy_pattern(r"(?:<\|start\|>assistant)?<\|channel\|>")
PART = lazy_pattern(r"<\|channel\|>([^<]{0,200}(?:<\|constrain\|>[^<]{0,50})?)<\|message\|>")
PART_END = lazy_pattern(r"<\|(?:end|return|call|start|channel)\|>")
QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "「": "」", "„": "“"}
BLANK_LINES = lazy_pattern(r"(?:[ \t]*\r?\n)+")
BLANKS = lazy_pattern(r"[\s\ufeff\u200b]*")


class Parted(NamedTuple):
    """A reply without its thoughts."""

    answer: str
    thoughts: str = ""
    unclosed: str = ""
    """The tag whose block has no end, so that there is no answer."""


def part_thoughts(text: str, tags: ThoughtTags = True) -> Parted:
    """Return what `text` answers, and the thoughts before it.

    Without thoughts the answer is the whole text. A block that never ends leaves no answer; text before an
    end without a beginning is thoughts, as many templates put the beginning into the prompt.
    """
    if tags is False or not text:
        return Parted(text)
    if tags is True:
        at = _behind_blanks(text, 0)
        if HARMONY.match(text, at):
            return _harmony(text)
        text = _without_end_marks(text)
        if text.startswith(tuple(begin for begin, _ in ANSWERS), at):
            return Parted(_rest(text, at))
        found = PROSE.match(text, at) or SPELLED.match(text, at)
        if not found and ANSWERS[-1][0] in text:
            found = STEPS.match(text, at)
        if found:
            return Parted(_rest(text, found.end()), found[1].strip())
    pairs = PAIRS if tags is True else tags
    return _blocks(text, pairs, xml=tags is True)


def _without_end_marks(text: str) -> str:
    """Return a text without the marks of a template at its very end.

    A mark behind a blank or alone is one that the answer is about, as is the end of ``<s>``.
    """
    rest = text.rstrip()
    for _ in range(MAX_BLOCKS):
        mark = next((mark for mark in END_MARKS if rest.endswith(mark)), "")
        before = rest.removesuffix(mark)
        spoken = before[-1:] in " \t" if mark != "</s>" else "<s>" in before or not before.strip()
        if spoken or not mark:
            break
        rest = text = before.rstrip()
    return text


def _blocks(text: str, pairs: Sequence[TagPair], *, xml: bool) -> Parted:
    """Return a text without the blocks that it begins with."""
    thoughts, done = list[str](), 0
    lone = None if _opening(text, 0, pairs, xml=xml) else _lone_end(text, pairs, xml=xml)
    if lone is not None:
        thoughts, done = [text[: lone.start()]], lone.end()
    while len(thoughts) < MAX_BLOCKS:
        block = _opening(text, done, pairs, xml=xml)
        if block is None:
            break
        begun, tag = block
        end = _end(text, begun.end(), tag)
        if end is None:
            return Parted("", _joined([*thoughts, text[begun.end() :]]), begun[0].strip())
        summary = SUMMARY.match(text, begun.end(), end.start()) if tag is DETAILS else None
        thoughts.append(text[(summary or begun).end() : end.start()])
        done = end.end()
    while thoughts and len(thoughts) < MAX_BLOCKS:
        again = _end_again(text[done:], pairs, xml=xml)
        if again is None:
            break
        thoughts.append(text[done : done + again.start()])
        done += again.end()
    return Parted(_rest(text, done), _joined(thoughts)) if thoughts else Parted(text)


def _opening(
    text: str, at: int, pairs: Sequence[TagPair], *, xml: bool
) -> tuple[re.Match[str], re.Pattern[str]] | None:
    """Return the beginning of a block at `at` or behind blanks, and what finds its tags."""
    at = _behind_blanks(text, at)
    if xml and (found := XML_OPEN.match(text, at)):
        return found, _xml_tags(found[1].lower())
    if xml and (found := DETAILS_OPEN.match(text, at)):
        return found, DETAILS
    for pair in pairs:
        if text.startswith(pair[0], at):
            return _literal(pair[0]).match(text, at), _tags(pair)  # type: ignore[return-value]
    return None


def _behind_blanks(text: str, at: int) -> int:
    found = BLANKS.match(text, at)
    return at if found is None else found.end()


@lru_cache(maxsize=64)
def _xml_tags(name: str) -> re.Pattern[str]:
    return re.compile(rf"<{name}(?:\s[^<>]{{0,100}})?>|(?P<end></{name}\s*>)", re.IGNORECASE)


@lru_cache(maxsize=64)
def _tags(pair: TagPair) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(pair[0])}|(?P<end>{re.escape(pair[1])})")


@lru_cache(maxsize=64)
def _literal(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text))


def _end(text: str, at: int, tags: re.Pattern[str]) -> re.Match[str] | None:
    """Return the end of the block that is open at `at`: where as many have ended as began, else the first.

    A tag in code or in quotes is one that the thoughts are about, unless there is no other.
    """
    first: re.Match[str] | None = None
    spoken: re.Match[str] | None = None
    depth = 1
    for tag in islice(tags.finditer(text, at), MAX_TAGS):
        ends = tag["end"] is not None
        if _is_spoken_of(text, tag):
            spoken = spoken or (tag if ends else None)
            continue
        depth += -1 if ends else 1
        first = first or (tag if ends else None)
        if depth == 0:
            return tag
    return first or spoken


def _lone_end(text: str, pairs: Sequence[TagPair], *, xml: bool) -> re.Match[str] | None:
    """Return the first end of a block without a beginning, outside of code and quotes."""
    found = _first_tag(text, XML_OPEN, XML_CLOSE) if xml else None
    for begin, end in pairs:
        if end in text:
            other = _first_tag(text, _literal(begin), _literal(end))
            if other is not None and (found is None or other.start() < found.start()):
                found = other
    return found


def _end_again(rest: str, pairs: Sequence[TagPair], *, xml: bool) -> re.Match[str] | None:
    """Return the end on a line of its own of thoughts that a tag had ended before, and went on."""
    found = _lone_end(rest, pairs, xml=xml)
    if found is None or rest[: found.start()].rpartition("\n")[2].strip():
        return None
    return None if rest[found.end() :].partition("\n")[0].strip() else found


def _first_tag(text: str, begins: re.Pattern[str], ends: re.Pattern[str]) -> re.Match[str] | None:
    """Return the first end, unless a beginning comes before it."""
    for end in islice(ends.finditer(text), MAX_TAGS):
        if not _is_spoken_of(text, end):
            begun = begins.search(text, 0, end.start())
            while begun is not None and _is_spoken_of(text, begun):
                begun = begins.search(text, begun.end(), end.start())
            return None if begun is not None or _in_fence(text[: end.start()]) else end
    return None


def _is_spoken_of(text: str, tag: re.Match[str]) -> bool:
    """Return whether a tag stands in inline code or between quotation marks."""
    start, end = tag.span()
    if start and QUOTES.get(text[start - 1], "") == text[end : end + 1] != "":
        return True
    before = text[max(0, start - LINE) : start].rpartition("\n")[2]
    return before.count("`") % 2 == 1 and "`" in text[end : end + LINE].partition("\n")[0]


def _in_fence(before: str) -> bool:
    fences = re.findall(r"^[ \t>]*(?:```|~~~)", before, re.MULTILINE)
    return len(fences) % 2 == 1


def _rest(text: str, at: int) -> str:
    """Return what follows thoughts, without blank lines before it and marks around it."""
    blank = BLANK_LINES.match(text, at)
    rest = text[blank.end() :] if blank else text[at:].lstrip(" \t")
    mark = next((mark for mark in END_MARKS if rest.startswith(mark)), "")
    rest = rest.removeprefix(mark).lstrip("\r\n") if mark else rest
    for begin, end in ANSWERS:
        if rest.lstrip().startswith(begin):
            rest = rest.lstrip().removeprefix(begin).rstrip().removesuffix(end).strip()
    return rest


def _joined(thoughts: Sequence[str]) -> str:
    return "\n\n".join(thought.strip() for thought in thoughts if thought.strip())


def _harmony(text: str) -> Parted:
    """Return the messages of the channel ``final`` as answer; those of others are thoughts.

    A message to a function stays in the answer, as the call that it is.
    """
    final, calls, thoughts = list[str](), list[str](), list[str]()
    header = ""
    for part, header, content in _messages(text):
        if " to=" in header:
            calls.append(part)
        elif header.split()[:1] == ["final"]:
            final.append(content)
        else:
            thoughts.append(content)
    answer = "\n".join(filter(None, [*final, "".join(calls)]))
    return Parted(answer, _joined(thoughts), "" if answer else f"<|channel|>{header.strip()}")


def _messages(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield each message of a text in the harmony format: whole, header and content."""
    found = PART.search(text)
    while found is not None:
        end = PART_END.search(text, found.end())
        close = len(text) if end is None else end.start()
        yield text[found.start() : close], found[1], text[found.end() : close]
        found = PART.search(text, close)

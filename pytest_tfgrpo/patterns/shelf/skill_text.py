"""The file of a skill: a pattern as coding agents load it, with a mark by which it is known again."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_tfgrpo.core.wire.stamp import stamp, stamp_bytes
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.harvest.suite.scenario_text import mapping_text
from pytest_tfgrpo.patterns.shelf.pattern import Pattern
from pytest_tfgrpo.patterns.shelf.pattern_file import EDGE, body_text, stamp_of
from pytest_tfgrpo.suite.documents.document import Refused
from pytest_tfgrpo.suite.documents.yaml_text import parse_yaml

GENERATOR = "tfgrpo"


def skill_text(pattern: Pattern) -> str:
    """Return the ``SKILL.md`` of a pattern; its metadata says who wrote it, and has a digest of the rest."""
    body = f"# {pattern.title}\n\n{lesson_of(pattern)}\n\n{body_text(pattern.body)}"
    front: dict[str, Json] = {"name": pattern.name, "description": pattern.description}
    metadata = {"generator": GENERATOR, "pattern": pattern.id, "stamp": stamp_of(pattern)}
    digest = _digest(front, metadata, body)
    text = mapping_text({**front, "metadata": {**metadata, "digest": digest}})
    return f"{EDGE}\n{text}{EDGE}\n\n{body}"


def lesson_of(pattern: Pattern) -> str:
    """Return the lesson of a pattern as it stands alone."""
    return pattern.lesson if pattern.polarity == "do" else f"Avoid: {pattern.lesson}"


def is_ours(text: str) -> bool:
    """Return whether a skill file was written here, even if it was edited since."""
    return _metadata(_front(text)[0]).get("generator") == GENERATOR


def is_as_written(text: str) -> bool:
    """Return whether a skill file was written here and nobody has edited it."""
    front, body = _front(text)
    metadata = dict(_metadata(front))
    digest = metadata.pop("digest", None)
    rest = {key: value for key, value in front.items() if key != "metadata"}
    return metadata.get("generator") == GENERATOR and digest == _digest(rest, metadata, body)


def _digest(front: Mapping[str, Json], metadata: Mapping[str, Json], body: str) -> str:
    return stamp([front, metadata, stamp_bytes(body.encode())])


def _front(text: str) -> tuple[Mapping[str, Json], str]:
    """Return front matter and body of a skill file; nothing of one that cannot be read."""
    text = text.replace("\r\n", "\n")
    start, edge, rest = text.partition(f"{EDGE}\n")
    front, end, body = rest.partition(f"\n{EDGE}\n\n")
    if start or not edge or not end:
        return {}, text
    try:
        value = parse_yaml(front + "\n").value
    except Refused:
        return {}, text
    return (value, body) if isinstance(value, dict) else ({}, text)


def _metadata(front: Mapping[str, Json]) -> Mapping[str, Json]:
    found = front.get("metadata")
    return found if isinstance(found, dict) else {}

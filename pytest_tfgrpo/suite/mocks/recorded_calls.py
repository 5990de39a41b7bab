"""Calls of tools in a recorded session, whose results a mock gives again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pytest_tfgrpo.core.errors import ToolFailure
from pytest_tfgrpo.core.wire.stamp import canonical
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.suite.documents.document import read_lines
from pytest_tfgrpo.suite.documents.json_text import parse_json_line

LINE_MAX_BYTES = 10_000_000
CALLS_MAX = 10_000


def read_calls(path: Path, scenario: str, tool: str) -> list[Json]:
    """Return the calls of a recorded session: each a name, its arguments, and its result or its error.

    The file has a line of JSON for each rollout, as ``--tfgrpo-record`` writes it, or for each call, as a
    program prints its frames. Of several rollouts those of `scenario` count, if there are some; equal calls
    are those of the first that made them. `tool` is the one that is mocked, or ``*``.
    Raises ValueError, or Refused, which has a line.
    """
    sessions = list(_sessions(path))
    own = [session for session in sessions if session[0] == scenario] or sessions
    found: dict[bytes, list[Json]] = {}
    for _, frames in own:
        tools = (f for f in frames if f.get("kind") == "tool" and tool in ("*", f.get("name")))
        calls = by_key([f.get("name"), f.get("input"), f.get("output", ""), f.get("error")] for f in tools)
        found = calls | found
    made = [call for calls in found.values() for call in calls]
    if not made:
        what = "no call of a tool" if tool == "*" else f"no call of the tool {tool!r}"
        raise ValueError(f"there is {what} in {path.name!r}; record a session with --tfgrpo-record")
    if len(made) > CALLS_MAX:
        raise ValueError(f"there are {len(made)} calls in {path.name!r}, more than {CALLS_MAX}")
    return made


def by_key(calls: Iterable[Json]) -> dict[bytes, list[Json]]:
    """Return calls by what equal ones have in common."""
    found: dict[bytes, list[Json]] = {}
    for call in calls:
        found.setdefault(key_of(call[0], call[1]), []).append(call)
    return found


def key_of(name: Json, arguments: Json) -> bytes:
    """Return what equal calls have in common; 40 equals 40.0, and no arguments equal none."""
    return canonical([name, plain(arguments) or {}])


def plain(value: Json) -> Json:
    """Return `value` with whole numbers as integers, as models write them either way."""
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def result_of(call: Json) -> Json:
    """Return the result of a recorded call; raises ToolFailure with its error."""
    _, _, output, error = call
    if error is not None:
        raise ToolFailure(str(error))
    return output


def _sessions(path: Path) -> Iterator[tuple[Json, list[Mapping[str, Json]]]]:
    """Yield the scenario of each session and its frames; lines with a frame alone are one session."""
    loose: list[Mapping[str, Json]] = []
    for number, text in read_lines(path, LINE_MAX_BYTES):
        data = parse_json_line(text, number) if text.strip() else None
        if not isinstance(data, Mapping):
            continue
        frames = data.get("frames")
        if isinstance(frames, list):
            yield data.get("scenario"), [frame for frame in frames if isinstance(frame, Mapping)]
        else:
            loose.append(data["frame"] if isinstance(data.get("frame"), Mapping) else data)
    if loose:
        yield None, loose

"""The output of an agent, checked as hostile input and turned into a trajectory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from pytest_tfgrpo.core.errors import AgentFailure, ProviderError
from pytest_tfgrpo.core.records import Frame, Json, Trajectory, Usage
from pytest_tfgrpo.core.wire import from_wire, to_wire

TOTAL_FACTOR = 8
"""Answer and frames together may have so many times the bytes that an answer may have."""
TOKENS_MAX = 10**12
USAGE = ("tokens", "cost_usd", "latency_ms")
CLOSING_KEYS = frozenset({"model", *USAGE})
ANSWER_KEYS = CLOSING_KEYS | {"answer", "frames"}
FRAME_KEYS = tuple(f.name for f in fields(Frame))


def read_trajectory(value: Any, *, answer_max_bytes: int, elapsed_ms: float, model: str) -> Trajectory:
    """Return the trajectory that an agent's `value` amounts to.

    `value` is the answer itself, a Trajectory, or a mapping: ``answer``, optionally ``frames`` (frames or
    mappings with a frame's keys) and, for the closing model call, ``model``, ``tokens``, ``cost_usd`` and
    ``latency_ms``. That call becomes a last frame, always so when there is no other, so that totals are sums
    over frames. Raises AgentFailure: ``garbage``, ``no_answer`` or ``oversize``.
    """
    if isinstance(value, str):
        answer = _sized(value, answer_max_bytes)
        closing = Frame(kind="model", name=model, output=answer, latency_ms=elapsed_ms)
        return Trajectory(answer=answer, frames=(closing,))
    data = _plain(value, answer_max_bytes)
    if not isinstance(data.get("answer"), str):
        raise AgentFailure(f"the answer must be a string, not {_brief(data.get('answer'))}", "garbage")
    answer = _sized(data["answer"], answer_max_bytes)
    listed = data.get("frames", [])
    if not isinstance(listed, list):
        raise AgentFailure(f"frames must be a list, not {_brief(listed)}", "garbage")
    frames = [_frame(item, f"frame {number}") for number, item in enumerate(listed, 1)]
    usage = {key: data[key] for key in USAGE if key in data}
    if usage or "model" in data or not frames:
        if not frames:
            usage.setdefault("latency_ms", elapsed_ms)
        closing_data = {"kind": "model", "name": data.get("model", model), "output": answer, **usage}
        frames.append(_frame(closing_data, "the answer's usage"))
    return Trajectory(answer=answer, frames=tuple(frames))


def read_output(stdout: bytes) -> str | dict[str, Json]:
    """Return what a program printed as a value for `read_trajectory`.

    Each line is a JSON object: ``{"frame": {...}}``, at last ``{"answer": "...", ...}``, or
    ``{"error": "..."}`` when the fault is the provider's. Output without any JSON object is, as a whole, the
    answer. Raises AgentFailure naming the line, and ProviderError for an error line.
    """
    text = stdout.decode("utf-8", "replace")
    lines = [(n, line.strip()) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    objects = [(n, line, _object(line)) for n, line in lines]
    if not objects:
        raise AgentFailure("the program printed no answer", "no_answer")
    if all(data is None for _, _, data in objects):
        return text.strip()
    frames: list[Json] = []
    final: dict[str, Json] | None = None
    for number, line, data in objects:
        if final is not None:
            raise AgentFailure(f"line {number} follows the answer: {_brief(line)}", "garbage")
        match data:
            case {"error": str(message), **rest} if not rest:
                raise ProviderError(f"the program reported: {message}")
            case {"frame": dict(frame), **rest} if not rest:
                frames.append(frame)
            case {"answer": _, **rest} if rest.keys() <= CLOSING_KEYS:
                final = data
            case _:
                raise AgentFailure(
                    f'line {number} is not {{"frame": {{...}}}}, {{"answer": "..."}} or {{"error": "..."}}: '
                    f"{_brief(line)}",
                    "garbage",
                )
    if final is None:
        raise AgentFailure("the program printed frames but no answer", "no_answer")
    return {**final, "frames": frames}


def total_max_bytes(answer_max_bytes: int) -> int:
    """Return how many bytes an answer and its frames may have together."""
    return TOTAL_FACTOR * answer_max_bytes


def _plain(value: Any, answer_max_bytes: int) -> dict[str, Json]:
    """Return a mapping or trajectory as plain JSON values, with lone surrogates replaced."""
    if isinstance(value, Trajectory):
        value = {"answer": value.answer, "frames": value.frames}
    if not isinstance(value, Mapping):
        raise AgentFailure(
            f"the agent returned {_brief(value)}; return a string, a mapping with 'answer', or a Trajectory",
            "garbage",
        )
    if unknown := value.keys() - ANSWER_KEYS:
        raise AgentFailure(f"unknown key {min(map(str, unknown))!r} beside the answer", "garbage")
    try:
        raw = json.dumps(dict(value), default=_frame_fields, allow_nan=False, ensure_ascii=False)
        data = raw.encode("utf-8", "replace")
        if len(data) > total_max_bytes(answer_max_bytes):
            raise AgentFailure(
                f"answer and frames have {len(data)} bytes, more than {total_max_bytes(answer_max_bytes)}",
                "oversize",
            )
        plain: dict[str, Json] = json.loads(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise AgentFailure(
            f"the agent returned a value that JSON cannot represent: {error}", "garbage"
        ) from error
    return plain


def _frame_fields(value: Any) -> Json:
    if isinstance(value, Frame):
        return {key: getattr(value, key) for key in FRAME_KEYS}
    if isinstance(value, Usage):
        return to_wire(value)
    raise TypeError(f"{_brief(value)} is not JSON")


def _frame(data: Json, where: str) -> Frame:
    try:
        frame = from_wire(Frame, data)
    except ValueError as error:
        raise AgentFailure(f"{where}: {error}", "garbage") from None
    for key in USAGE:
        number = getattr(frame, key)
        if number is not None and not 0 <= number <= TOKENS_MAX:
            raise AgentFailure(
                f"{where}: {key} must be between 0 and {TOKENS_MAX}, not {number!r}", "garbage"
            )
    return frame


def _sized(answer: str, limit: int) -> str:
    """Return `answer` as a plain string that UTF-8 can hold; raises AgentFailure when it is too large."""
    if type(answer) is str and answer.isascii():
        size = len(answer)
    else:
        data = answer.encode("utf-8", "replace")
        size, answer = len(data), data.decode("utf-8")
    if size > limit:
        raise AgentFailure(f"the answer has {size} bytes, more than {limit}", "oversize")
    return answer


def _object(line: str) -> dict[str, Json] | None:
    if not line.startswith("{"):
        return None
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _brief(value: Any) -> str:
    if isinstance(value, str | int | float | None):
        text = repr(value)
        return text if len(text) <= 80 else text[:77] + "..."
    return f"a value of type {type(value).__name__}"

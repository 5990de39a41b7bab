"""The output of an agent, checked as hostile input and turned into a trajectory."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from pytest_tfgrpo.core.conversations import USER
from pytest_tfgrpo.core.errors import AgentFailure, ProviderError, RolloutFault
from pytest_tfgrpo.core.python.clock import utc_time
from pytest_tfgrpo.core.records import Frame, Trajectory, Usage
from pytest_tfgrpo.core.sampled import reported
from pytest_tfgrpo.core.texts.named_values import nearest
from pytest_tfgrpo.core.texts.text import few
from pytest_tfgrpo.core.wire.wire import Json, from_wire, to_wire
from pytest_tfgrpo.llm.replies.thoughts import part_thoughts

TOTAL_FACTOR = 8
"""Answer and frames together may have so many times the bytes that an answer may have."""
TOKENS_MAX = 10**12
USAGE = ("tokens", "cost_usd", "latency_ms")
TOLD = ("frames", "model", *USAGE)
"""Keys of an answer that say which calls were made for it."""
SAMPLED = "sampled"
ANSWER_KEYS = frozenset({"answer", "frames", "model", *USAGE, SAMPLED})
FRAME_KEYS = frozenset(f.name for f in fields(Frame)) - {"extra"}
REQUIRED = ("kind", "name")
EXTRA_KEYS, EXTRA_BYTES, EXTRA_DEPTH = 20, 10_000, 20
"""Limits of what is kept of the unknown keys of one frame or answer."""
EXTRA_TOTAL = 100_000
"""Bytes kept of all unknown keys of a trajectory."""
SMALL_CHARS, SMALL_FRAMES = 150, 100
"""A plain text of so many characters in each of so many frames is within all limits."""
DROPPED = "dropped"
"""Key in `extra` that counts what was over these limits, or not JSON."""


def read_trajectory(
    value: Any,
    *,
    answer_max_bytes: int,
    elapsed_ms: float,
    model: str,
    spans: Callable[[], tuple[Frame, ...]] = tuple,
) -> Trajectory:
    """Return the trajectory that an agent's `value` amounts to.

    `value` is the answer itself, a Trajectory, or a mapping: ``answer``, optionally ``frames`` (frames or
    mappings with a frame's keys) and, for the closing model call, ``model``, ``tokens``, ``cost_usd`` and
    ``latency_ms``. That call becomes a last frame, always so when there is no other, so that totals are sums
    over frames. Where `value` has no frames, those that `spans` returns take their place: all of them, or
    those of tools alone where `value` says what the model took. Unknown keys are kept as `extra` of the frame
    or trajectory, within limits.
    Raises AgentFailure: ``garbage``, ``no_answer`` or ``oversize``; it keeps the frames, which were paid.
    """
    try:
        return _read(value, answer_max_bytes, elapsed_ms, model, spans)
    except AgentFailure as failure:
        failure.frames = _kept(value, answer_max_bytes, elapsed_ms, model)
        raise


def _kept(value: Any, answer_max_bytes: int, elapsed_ms: float, model: str) -> tuple[Frame, ...]:
    """Return the frames of a value without its answer; none where they are too large or wrong themselves."""
    if isinstance(value, Trajectory):
        value = {"frames": value.frames}
    if not isinstance(value, Mapping) or not (told := {k: value[k] for k in TOLD if k in value}):
        return ()
    try:
        return _read({"answer": "", **told}, answer_max_bytes, elapsed_ms, model, tuple).frames
    except AgentFailure:
        return ()


def _read(
    value: Any,
    answer_max_bytes: int,
    elapsed_ms: float,
    model: str,
    spans: Callable[[], tuple[Frame, ...]],
) -> Trajectory:
    if isinstance(value, str):
        answer = _sized(value, answer_max_bytes)
        if found := spans():
            return Trajectory(answer=answer, frames=found)
        closing = Frame(kind="model", name=model, output=answer, latency_ms=elapsed_ms)
        return Trajectory(answer=answer, frames=(closing,))
    data = _plain(value, answer_max_bytes)
    if not isinstance(data.get("answer"), str):
        raise AgentFailure(_no_answer(data), "garbage")
    answer = _sized(data["answer"], answer_max_bytes)
    listed = data.get("frames", [])
    if not isinstance(listed, list):
        raise AgentFailure(f"frames must be a list, not {_brief(listed)}", "garbage")
    frames = [_frame(item, f"frame {number}") for number, item in enumerate(listed, 1)]
    usage = {key: data[key] for key in (*USAGE, SAMPLED) if key in data}
    if not frames:
        says = usage or "model" in data
        frames += _tools_alone(spans()) if says else spans()
    if usage or "model" in data or not frames:
        if not frames:
            usage.setdefault("latency_ms", elapsed_ms)
        closing_data = {"kind": "model", "name": data.get("model", model), "output": answer, **usage}
        frames.append(_frame(closing_data, "the answer's usage"))
    return Trajectory(answer=answer, frames=tuple(frames), extra=data.get("extra", {}))


def _tools_alone(frames: Sequence[Frame]) -> Iterator[Frame]:
    """Yield the calls of tools, each inside of the one that it was made in."""
    tools = [before for before, frame in enumerate(frames) if frame.kind == "tool"]
    places = {before: now for now, before in enumerate(tools)}
    for before, now in places.items():
        frame = frames[before]
        around = places.get(before - frame.inside, now) if frame.inside else now
        yield replace(frame, inside=now - around)


def read_output(stdout: bytes) -> str | dict[str, Json]:
    """Return what a program printed as a value for `read_trajectory`.

    Each line is a JSON object: ``{"frame": {...}}``, at last ``{"answer": "...", ...}``, or
    ``{"error": "..."}`` when the fault is the provider's; each may have further keys. Output without any JSON
    object is, as a whole, the answer.

    Raises AgentFailure naming the line, and ProviderError for an error line; both keep the frames before it.
    """
    frames: list[Json] = []
    try:
        return _value_of(stdout, frames)
    except RolloutFault as fault:
        if frames:
            fault.frames = _kept({"frames": frames}, len(stdout), 0.0, "")
        raise


def _value_of(stdout: bytes, frames: list[Json]) -> str | dict[str, Json]:
    """Return what a program printed; its frames are added to `frames`, also where it cannot be used."""
    text = stdout.decode("utf-8", "replace")
    lines = [(n, line.strip()) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    objects = [(n, line, _object(line)) for n, line in lines]
    if not objects:
        raise AgentFailure("the program printed no answer", "no_answer")
    if all(data is None for _, _, data in objects):
        return text.strip()
    final: dict[str, Json] | None = None
    for number, line, data in objects:
        if final is not None:
            raise AgentFailure(f"line {number} follows the answer: {_brief(line)}", "garbage")
        match data:
            case {"error": str(message), **rest} if not rest.keys() & {"answer", "frame"}:
                raise ProviderError(f"the program reported: {message}")
            case {"frame": dict(frame), **rest} if "answer" not in rest and not isinstance(
                rest.get("error"), str
            ):
                frames.append(_with_extra(frame, rest) if rest else frame)
            case {"answer": _, **rest} if "frame" not in rest and not isinstance(rest.get("error"), str):
                final = data
            case _:
                raise AgentFailure(
                    f'line {number} is not {{"frame": {{...}}}}, {{"answer": "..."}} or {{"error": "..."}}: '
                    f"{_brief(line)}{_near_miss(data or (), ['frame', 'answer', 'error'])}",
                    "garbage",
                )
    if final is None:
        raise AgentFailure("the program printed frames but no answer", "no_answer")
    listed = final.get("frames", [])
    return {**final, "frames": [*frames, *listed] if isinstance(listed, list) else listed}


def is_amount(value: object) -> bool:
    """Return whether a value can be tokens, dollars or milliseconds of one frame."""
    return type(value) in (int, float) and 0 <= value <= TOKENS_MAX  # type: ignore[operator]


def is_usage(usage: object) -> bool:
    """Return whether a value is the usage of a model call, with counts that can be."""
    return isinstance(usage, Usage) and all(
        type(n) is int and is_amount(n)
        for n in (usage.prompt, usage.completion, usage.reasoning, usage.cached)
    )


def total_max_bytes(answer_max_bytes: int) -> int:
    """Return how many bytes an answer and its frames may have together."""
    return TOTAL_FACTOR * answer_max_bytes


def _plain(value: Any, answer_max_bytes: int) -> dict[str, Json]:
    """Return a mapping or trajectory as plain JSON values, with lone surrogates replaced."""
    if isinstance(value, Trajectory):
        value = {"answer": value.answer, "frames": value.frames, "extra": value.extra}
    if isinstance(value, Iterator | AsyncIterator):
        raise AgentFailure(
            f"the agent returned {_brief(value)}, which streams; join its parts and return one string",
            "garbage",
        )
    if not isinstance(value, Mapping):
        raise AgentFailure(
            f"the agent returned {_brief(value)}; return a string, a mapping with 'answer', or a Trajectory",
            "garbage",
        )
    extras, limit = _Extras(), total_max_bytes(answer_max_bytes)
    value, unknown = _split(value, ANSWER_KEYS)
    if unknown:
        value["extra"] = extras.keep(unknown)
    _check_sampled(value)
    if isinstance(value.get("frames"), list | tuple):
        value["frames"] = [_bounded(frame, extras) for frame in value["frames"]]
    try:
        raw = json.dumps(value, default=_usage_fields, allow_nan=False, ensure_ascii=False)
        data = raw.encode("utf-8", "replace")
        size = len(data) - extras.size
        if size > limit:
            raise AgentFailure(f"answer and frames have {size} bytes, more than {limit}", "oversize")
        plain: dict[str, Json] = json.loads(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise AgentFailure(
            f"the agent returned a value that JSON cannot represent: {error}", "garbage"
        ) from error
    return plain


class _Extras:
    """Keeps unknown keys of one trajectory within limits."""

    def __init__(self) -> None:
        self.size = 0
        """Bytes of JSON kept so far."""

    def keep(self, unknown: Mapping[Any, Any]) -> dict[str, Json]:
        """Return what is kept of the unknown keys of one frame or answer."""
        kept: dict[str, Json] = {}
        room, dropped = min(EXTRA_BYTES, EXTRA_TOTAL - self.size), 0
        for key, value in unknown.items():
            text = b"" if len(kept) >= EXTRA_KEYS else _json_of({str(key): value})
            if 0 < len(text) <= room and not _is_deep(found := json.loads(text), EXTRA_DEPTH):
                kept |= found
                room -= len(text)
                self.size += len(text)
            else:
                dropped += 1
        return kept | {DROPPED: dropped} if dropped else kept


def limited(trajectory: Trajectory) -> Trajectory:
    """Return a trajectory whose `extra` is within the limits, also in its frames."""
    extra_of = [frame.extra for frame in trajectory.frames if frame.extra]
    if not trajectory.extra and len(extra_of) <= SMALL_FRAMES and all(map(_is_small, extra_of)):
        return trajectory
    extras = _Extras()
    frames = tuple(replace(f, extra=extras.keep(f.extra)) if f.extra else f for f in trajectory.frames)
    return replace(trajectory, frames=frames, extra=extras.keep(trajectory.extra))


def without_thoughts(trajectory: Trajectory) -> Trajectory:
    """Return a trajectory whose answer has no thoughts before it; its last model frame keeps them.

    Raises AgentFailure where nothing is left.
    """
    parted = part_thoughts(trajectory.answer)
    if parted.answer == trajectory.answer:
        return trajectory
    frames = list(trajectory.frames)
    place = next((n for n in reversed(range(len(frames))) if frames[n].kind == "model"), None)
    if place is not None:
        said = frames[place].output
        said = parted.answer if said == trajectory.answer else said
        frames[place] = replace(frames[place], output=said, thoughts=parted.thoughts)
    if not parted.answer.strip():
        why = f"; they begin with {parted.unclosed} and never end" if parted.unclosed else ""
        raise AgentFailure(
            f"the agent returned thoughts and no answer{why}", "no_answer", frames=tuple(frames)
        )
    return replace(trajectory, answer=parted.answer, frames=tuple(frames))


def _is_small(extra: object) -> bool:
    """Return whether `extra` is one short text, which JSON keeps as it is: what most calls report."""
    if type(extra) is not dict or len(extra) != 1:
        return False
    texts = next(iter(extra.items()))
    return all(type(text) is str and text.isascii() for text in texts) and len("".join(texts)) <= SMALL_CHARS


def _json_of(value: Any) -> bytes:
    """Return `value` as JSON; nothing where JSON cannot hold it."""
    try:
        return json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError):
        return b""


def _is_deep(value: Json, levels: int) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(_is_deep(part, levels - 1) for part in parts)


def _split(data: Mapping[Any, Any], known: Collection[str]) -> tuple[dict[str, Any], dict[Any, Any]]:
    """Return what `data` has under known keys, and the rest, together with what its `extra` holds."""
    rest = {key: item for key, item in data.items() if key not in known}
    if isinstance(rest.get("extra"), Mapping):
        rest |= rest.pop("extra")
    return {key: item for key, item in data.items() if key in known}, rest


def _with_extra(frame: Mapping[Any, Json], more: Mapping[Any, Json]) -> dict[str, Json]:
    mine, rest = _split(frame, FRAME_KEYS)
    return {**mine, "extra": {**rest, **more}}


def _bounded(frame: Any, extras: _Extras) -> Any:
    """Return a frame as a mapping whose unknown keys are under `extra`."""
    if isinstance(frame, Frame):
        frame = {f.name: getattr(frame, f.name) for f in fields(Frame)}
    if not isinstance(frame, Mapping):
        return frame
    mine, rest = _split(frame, FRAME_KEYS)
    _check_sampled(mine)
    began = mine.pop("started_at", None)
    if time := utc_time(began):
        mine["started_at"] = time
    elif began is not None:
        rest["started_at"] = began
    inside = mine.pop("inside", 0)
    if type(inside) is int and 0 <= inside <= TOKENS_MAX:
        mine["inside"] = inside
    else:
        rest["inside"] = inside
    return {**mine, "extra": extras.keep(rest)} if rest else mine


def _check_sampled(call: dict[str, Any]) -> None:
    """Put what can be relied on in place of the log-probabilities that a frame or an answer has, if any."""
    if call.get(SAMPLED) is not None:
        usage = call.get("usage")
        count = usage.get("completion") if isinstance(usage, Mapping) else getattr(usage, "completion", None)
        call[SAMPLED] = to_wire(reported(call[SAMPLED], count if type(count) is int else None))


def _near_miss(unknown: Iterable[str], missing: Collection[str]) -> str:
    """Return a hint where an unknown key may be meant to be a missing one."""
    hints = ((key, nearest(key, missing)) for key in unknown)
    return next((f"; unknown key {_brief(key)}{hint}" for key, hint in hints if hint), "")


def _no_answer(data: Mapping[str, Json]) -> str:
    """Return what is wrong with a mapping without a text as answer."""
    if "answer" in data:
        return f"the answer must be a string, not {_brief(data['answer'])}"
    unknown = data.get("extra", {})
    keys = [_brief(key) for key in (*unknown, *(key for key in data if key != "extra"))]
    return f"no key 'answer'; it has {few(keys) or 'none'}{_near_miss(unknown, ['answer'])}"


def _usage_fields(value: Any) -> Json:
    if isinstance(value, Usage):
        return to_wire(value)
    raise TypeError(f"{_brief(value)} is not JSON")


def _frame(data: Json, where: str) -> Frame:
    try:
        frame = from_wire(Frame, data)
    except ValueError as error:
        known = data if isinstance(data, dict) else {}
        hint = _near_miss(known.get("extra", ()), [key for key in REQUIRED if key not in known])
        raise AgentFailure(f"{where}: {error}{hint}", "garbage") from None
    if frame.kind == USER:
        raise AgentFailure(f"{where}: the kind must be model or tool, not user", "garbage")
    for key in USAGE:
        number = getattr(frame, key)
        if number is not None and not is_amount(number):
            raise AgentFailure(
                f"{where}: {key} must be between 0 and {TOKENS_MAX}, not {_brief(number)}", "garbage"
            )
    if frame.usage is not None and not is_usage(frame.usage):
        raise AgentFailure(f"{where}: the tokens of usage must be between 0 and {TOKENS_MAX}", "garbage")
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
        try:
            text = repr(value)
        except ValueError:  # Python prints no integer of thousands of digits
            return "an integer of thousands of digits"
        return text if len(text) <= 80 else text[:77] + "..."
    return f"a value of type {type(value).__name__}"

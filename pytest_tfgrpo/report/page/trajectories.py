"""The trajectories of a run, compressed in chunks that fit into a page together."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from pytest_tfgrpo.core.conversations import USER, without_repeats
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Frame, Group, Rollout, Run, Score
from pytest_tfgrpo.core.scenarios import Check, Scenario, SimulatedUser
from pytest_tfgrpo.core.texts.text import cut
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.privacy.redact import redact
from pytest_tfgrpo.report.page.grid import Grid, ScenarioRow
from pytest_tfgrpo.report.page.prompts import Asked, AskedPrompts

Place: TypeAlias = tuple[int, int]
"""Row and column of a group in the grid."""

CHUNK = 600_000
"""Characters of JSON beyond which a chunk is closed: what opening one group has to unpack."""
LONGEST = 200_000
"""Characters of one text that the page holds."""
LEVEL = 9
SAMPLE = 3_000_000
"""Characters of which the ratio of compression is taken when a run may be too large."""
BLOCK = 60
"""Neighbours in a sample: groups of one scenario share texts."""
MARGIN = 0.97
LOOSE = 0.15
"""Share of the room that may stay empty before something is put back."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Packed:
    """Trajectories ready to be put into a page."""

    chunks: tuple[str, ...] = ()
    """gzip in base64."""
    chunk_of: Mapping[Place, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How many rollouts are there without their frames, and how many groups only as numbers."""


class Told(NamedTuple):
    """Facts about a group that it does not contain itself."""

    scenarios: Mapping[str, Scenario]
    prompts: AskedPrompts


class Item(NamedTuple):
    """Something that a page can do without."""

    kind: Literal["frames", "group"]
    key: str
    size: int
    """Characters, uncompressed."""


Groups: TypeAlias = Sequence[tuple[Place, Group]]


def told_of(run: Run) -> Told:
    """Return the facts that the groups of a run do not contain themselves."""
    return Told({s.id: s for s in run.scenarios}, AskedPrompts(run))


def pack(grid: Grid, run: Run, room: int, kept: Container[str] = ()) -> Packed:
    """Return the trajectories of a run in at most `room` characters.

    What does not fit is left out in the order of `expendable`, and counted; `kept` are ids of rollouts.
    """
    told = told_of(run)
    groups = [found for i, row in enumerate(grid.inside) for found in groups_of(grid, i, row)]
    size = sum(_size(group) for _, group in groups)
    items: list[Item] = []
    gone, ratio = 0, 1.0
    if size > room:
        items = list(expendable([group for _, group in groups], kept))
        whole, ratio = _ratios(groups, told, size)
        gone = _spare(items, 0, (size * whole - room * MARGIN) / ratio)
    returned = False
    while True:
        found = _pack(groups, told, items[:gone])
        over = sum(map(len, found.chunks)) - room
        if -over > room * LOOSE and gone and not returned:
            gone, returned = _give_back(items, gone, (-over - room * (1 - MARGIN)) / ratio), True
        elif over <= 0 or (items and gone == len(items)):
            return found
        else:
            items = items or list(expendable([group for _, group in groups], kept))
            further = _spare(items, gone, (over + room * (1 - MARGIN)) / ratio)
            gone = max(further, gone + math.ceil((len(items) - gone) / 50))


def groups_of(grid: Grid, place: int, row: ScenarioRow) -> Iterator[tuple[Place, Group]]:
    """Yield the groups of the row at a place."""
    for column, phase in enumerate(grid.columns):
        if row.id in phase.groups:
            yield (place, column), phase.groups[row.id]


def expendable(groups: Sequence[Group], kept: Container[str] = ()) -> Iterator[Item]:
    """Yield what can be left out, the least telling first.

    Frames of rollouts that are neither `kept` nor best or worst of an informative group, then other frames,
    then whole groups: those without mixed results before the others.
    """
    telling = {id_ for group in groups if group.informative for id_ in extremes(group)}
    rollouts = [rollout for group in groups for rollout in group.rollouts if rollout.frames]
    for wanted in (False, True):
        for rollout in rollouts:
            if (rollout.rollout_id in telling or rollout.rollout_id in kept) == wanted:
                yield Item("frames", rollout.rollout_id, _frames_size(rollout))
    for informative in (False, True):
        for group in groups:
            if group.informative == informative:
                frames = sum(map(_frames_size, group.rollouts))
                yield Item("group", group.group_id, _size(group) - frames)


def extremes(group: Group) -> tuple[str, ...]:
    """Return the ids of the best and the worst rollout that has a reward; of equals the cheapest."""
    known = [
        (score.reward, -rollout.tokens, -rollout.index, rollout.rollout_id)
        for rollout, score in zip(group.rollouts, group.scores, strict=True)
        if score.reward is not None
    ]
    if len(known) < 2:
        return tuple(row[-1] for row in known)
    best = max(known)[-1]
    worst = min(row for row in known if row[-1] != best)[-1]
    return best, worst


def readable(value: Json) -> str:
    """Return the input of a call as text: an object by key, texts of several lines as they are."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(
            f"{key}:\n{text}" if "\n" in (text := _literal(item)) else f"{key}: {text}"
            for key, item in value.items()
        )
    return _literal(value)


def _written(value: Json) -> str:
    """Return the input of a call as it was made: a text as it is, else JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=str)


def _ms_since_1970(time: str | None) -> float | None:
    try:
        return None if time is None else datetime.fromisoformat(time).timestamp() * 1000
    except ValueError:  # an agent may report anything as the time
        return None


def told_params(check: Check) -> dict[str, Json]:
    """Return the parameters of a check without digests of files, which serve no reader."""
    return {key: value for key, value in check.params.items() if not key.endswith("_sha256")}


def told_user(user: SimulatedUser) -> Iterator[tuple[str, str]]:
    """Yield whom a model plays as names and texts, without what the scenario leaves open."""
    yield "goal", user.goal
    for name, text in (("persona", user.persona), ("knows", user.knows), ("stop", user.stop)):
        if text:
            yield name, text
    yield "messages at most", str(user.max_turns)


def _literal(value: Json) -> str:
    if isinstance(value, str) and "\n" in value:
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _spare(items: Sequence[Item], gone: int, wanted: float) -> int:
    """Return how many items, from the first, save `wanted` characters more than the first `gone` do."""
    while wanted > 0 and gone < len(items):
        wanted -= items[gone].size
        gone += 1
    return gone


def _give_back(items: Sequence[Item], gone: int, spare: float) -> int:
    """Return how many of the first `gone` items stay left out when `spare` characters are to be had."""
    while gone and spare >= items[gone - 1].size:
        spare -= items[gone - 1].size
        gone -= 1
    return gone


def _ratios(groups: Groups, told: Told, size: int) -> tuple[float, float]:
    """Return about how much of a character is left in the page, of all and of frames, from spread groups."""
    step = BLOCK * max(1, size // SAMPLE)
    sample = [one for start in range(0, len(groups), step) for one in groups[start : start + BLOCK]]
    frames = [
        Item("frames", rollout.rollout_id, _frames_size(rollout))
        for _, group in sample
        for rollout in group.rollouts
    ]
    full, bare = (sum(map(len, _pack(sample, told, gone).chunks)) for gone in ([], frames))
    whole = full / max(1, sum(_size(group) for _, group in sample))
    return whole, max(0.01, (full - bare) / max(1, sum(item.size for item in frames)))


def _pack(groups: Groups, told: Told, left_out: Collection[Item]) -> Packed:
    without = {item.key for item in left_out}
    chunks: list[str] = []
    chunk_of: dict[Place, int] = {}
    part = ChunkWriter()
    for place, group in groups:
        if group.group_id in without:
            continue
        part.add(place, group, told, without)
        chunk_of[place] = len(chunks)
        if part.size > CHUNK:
            chunks.append(compressed(part.json()))
            part = ChunkWriter()
    if part.groups:
        chunks.append(compressed(part.json()))
    counts = {kind: sum(item.kind == kind for item in left_out) for kind in ("frames", "group")}
    return Packed(chunks=tuple(chunks), chunk_of=chunk_of, left_out=counts if left_out else {})


def compressed(text: str) -> str:
    """Return ASCII text as gzip in base64."""
    return base64.b64encode(gzipped(text, LEVEL)).decode("ascii")


def gzipped(text: str, level: int) -> bytes:
    """Return ASCII text as gzip."""
    made = zlib.compressobj(level, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    return made.compress(text.encode("ascii")) + made.flush()


class ChunkWriter:
    """One chunk in the making; texts that occur again are held once."""

    def __init__(self) -> None:
        self.groups: dict[str, str] = {}
        self.scenarios: dict[str, Json] = {}
        self.size = 0
        self._texts: dict[str, int] = {}
        """Without secrets."""
        self._places: dict[str, int] = {}
        """The same by the texts as they were."""

    def add(self, place: Place, group: Group, told: Told, without: Collection[str] = ()) -> None:
        """Add a group except for the frames of the rollouts whose ids are in `without`."""
        scenario = told.scenarios[group.scenario_id]
        if scenario.id not in self.scenarios:
            self.scenarios[scenario.id] = self._scenario(scenario)
        value = {
            "id": group.group_id,
            "scenario": scenario.id,
            "informative": group.informative,
            "pair": extremes(group),
            "asked": self._asked(told.prompts.of(group, scenario)),
            "rollouts": [
                self._rollout(rollout, score, rollout.rollout_id not in without)
                for rollout, score in zip(group.rollouts, group.scores, strict=True)
            ],
        }
        text = json.dumps(value, separators=(",", ":"))
        self.groups[f"{place[0]}.{place[1]}"] = text
        self.size += len(text)

    def json(self) -> str:
        """Return all of it."""
        groups = ",".join(f'"{place}":{text}' for place, text in self.groups.items())
        texts, scenarios = json.dumps(list(self._texts)), json.dumps(self.scenarios)
        return f'{{"texts":{texts},"scenarios":{scenarios},"groups":{{{groups}}}}}'

    def _text(self, text: str) -> int:
        known = self._places.get(text)
        if known is None:
            held = cut(redact(text), LONGEST)
            new = len(self._texts)
            known = self._places[text] = self._texts.setdefault(held, new)
            self.size += len(held) * (known == new)
        return known

    def _scenario(self, scenario: Scenario) -> Json:
        value: dict[str, Json] = {
            "id": scenario.id,
            "stamp": scenario.stamp,
            "prompt": self._text(scenario.prompt),
            "input": self._text(readable(scenario.input)),
            "attachments": [attachment.name for attachment in scenario.attachments],
            "checks": [
                [
                    check.title + ("" if check.turn is None else f" (turn {check.turn})"),
                    check.weight,
                    self._text(readable(told_params(check))),
                ]
                for check in scenario.checks
            ],
            "checker": scenario.checker or "",
            "truth": scenario.truth,
        }
        if scenario.turns:
            value["turns"] = [self._text(turn) for turn in scenario.turns]
        if scenario.user is not None:
            value["user"] = [[name, self._text(told)] for name, told in told_user(scenario.user)]
        return value

    def _asked(self, asked: Asked | None) -> Json:
        if asked is None:
            return None
        return {"system": [self._text(part) for part in asked.system], "user": self._text(asked.user)}

    def _rollout(self, rollout: Rollout, score: Score, framed: bool) -> Json:
        value = {
            "id": rollout.rollout_id,
            "index": rollout.index,
            "status": rollout.status,
            "seed": str(rollout.seed),
            "temperature": rollout.temperature,
            "score": score.gt_score,
            "reward": score.reward,
            "rank": score.relative_rank,
            "advantage": score.advantage,
            "extra": self._named(rollout, score),
            "tokens": rollout.tokens,
            "cost": rollout.cost_usd,
            "ms": round(rollout.latency_ms, 2),
            "answer": self._text(rollout.answer),
            "checks": [[c.kind, c.weight, c.credit, self._text(c.reason)] for c in rollout.checks],
            "lessons": rollout.experiences,
            "withheld": rollout.left_out,
            "prompt": rollout.prompt_stamp,
            "frames": self._frames(rollout)
            if framed
            else sum(frame.kind != USER for frame in rollout.frames),
        }
        evidence = {**score.evidence, **{f"test.{one.name}": one.why for one in rollout.scores if one.why}}
        if evidence:
            value["evidence"] = {name: self._text(why) for name, why in evidence.items()}
        if rollout.pictures and framed:
            value["pictures"] = [
                {"name": redact(one.name), "type": one.type, "data": one.data, "why": redact(one.why)}
                for one in rollout.pictures
            ]
        if rollout.failure is not None:
            value["failure"] = [rollout.failure.code, self._text(rollout.failure.message)]
        if rollout.opinion is not None:
            value["judge"] = [rollout.opinion.score, self._text(rollout.opinion.reason)]
        return value

    @staticmethod
    def _named(rollout: Rollout, score: Score) -> Json:
        """Return the scores of a rollout by rewarders, judge and test function, by metric."""
        found = dict(score.extra)
        if rollout.opinion is not None:
            found |= {f"judge.{name}": share for name, share in rollout.opinion.criteria.items()}
        return found | {f"test.{one.name}": one.value for one in rollout.scores}

    def _frames(self, rollout: Rollout) -> list[Json]:
        times = [_ms_since_1970(frame.started_at) for frame in rollout.frames]
        first = min((time for time in times if time is not None), default=0.0)
        return [
            self._frame(frame, None if time is None else time - first)
            for frame, time in zip(without_repeats(rollout.frames), times, strict=True)
        ]

    def _frame(self, frame: Frame, at_ms: float | None) -> Json:
        value: dict[str, Json] = {
            "kind": frame.kind,
            "name": self._text(frame.name),
            "input": self._text(_written(frame.input)),
            "output": self._text(frame.output),
            "tokens": frame.tokens,
            "cost": frame.cost_usd,
            "ms": round(frame.latency_ms, 2),
        }
        if frame.error is not None:
            value["error"] = self._text(frame.error)
        if frame.finish:
            value["finish"] = frame.finish
        if frame.thoughts:
            value["thoughts"] = self._text(frame.thoughts)
        if frame.inside:
            value["inside"] = frame.inside
        if at_ms is not None:
            value["at"] = round(at_ms)
        return value


def _size(group: Group) -> int:
    """Return about how many characters a group takes, uncompressed."""
    return sum(
        400
        + _held(rollout.answer)
        + sum(60 + len(check.reason) for check in rollout.checks)
        + 19 * (len(rollout.experiences) + len(rollout.left_out))
        + (len(rollout.failure.message) if rollout.failure else 0)
        + _frames_size(rollout)
        for rollout in group.rollouts
    )


def _frames_size(rollout: Rollout) -> int:
    """Return about how many characters frames and pictures take, which are left out together."""
    return sum(len(picture.data) for picture in rollout.pictures) + sum(
        100 + _held(frame.output) + _held(frame.input) + _held(frame.error) + _held(frame.thoughts)
        for frame in rollout.frames
    )


def _held(value: Json) -> int:
    if value is None:
        return 0
    return min(LONGEST, len(value if isinstance(value, str) else str(value)))

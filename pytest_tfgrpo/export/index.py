"""The index of a finished run's journal: where each training group is, so that few are in memory at once."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from pytest_tfgrpo.core.errors import ExportError, JournalError, describe
from pytest_tfgrpo.core.files import JOURNAL, open_plain
from pytest_tfgrpo.core.lessons import Experience, Library, Revision
from pytest_tfgrpo.core.records import Group, Phase, Rollout, RunHeader
from pytest_tfgrpo.core.scenarios import Prompt, PromptPack, Scenario
from pytest_tfgrpo.core.wire.wire import from_wire
from pytest_tfgrpo.export.source import CALLS_TOOLS, HAS_LOGPROBS, HAS_TOKEN_IDS
from pytest_tfgrpo.runs.journal.journal import Event, decode, is_open, scan
from pytest_tfgrpo.runs.journal.journal_contents import HEADER, header_of
from pytest_tfgrpo.runs.schedule import group_id
from pytest_tfgrpo.suite.packs import pack_for
from pytest_tfgrpo.suite.prompt import prompt_again, render_prompt

CANCELLED = "cancelled"
ERROR = "error"
MADE_AGAIN = "made again after a resume"
NO_GROUP = "in no scored group"
_SHIFT = 3


class RunIndex:
    """Places of the training groups of a run in its journal, with all that their prompts were made from."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        """Read the journal at `path`, open as `file`, once; raises JournalError.

        A place is the offset of a line, shifted by three bits for its flags.
        """
        self.path = path
        self._file = file
        self.status = ""
        """How the run ended; empty where it was killed."""
        self.left_out: Counter[str] = Counter()
        """Rollouts that are in no group, by reason."""
        self.lessons: dict[str, Experience] = {}
        """Every lesson that a training prompt may have carried, by id."""
        self._groups: dict[str, array[int]] = {}
        """By id, the place of the group's line and those of its rollouts."""
        self._free: dict[str, int] = {}
        """Places of rollouts that are in no group yet, by id."""
        events = scan(path)
        first, offset = next(events, (None, 0))
        with _readable(path, first):
            data = header_of(path, first)
            self.header = from_wire(RunHeader, {key: value for key, value in data.items() if key in HEADER})
            self.scenarios = {scenario.id: scenario for scenario in self.header.scenarios}
            packs = from_wire(tuple[PromptPack, ...], data.get("packs", []))
            self.packs = {pack.domain: pack for pack in packs}
            self.phases = [p for p in from_wire(tuple[Phase, ...], data["phases"]) if p.mode == "train"]
            self._learn(from_wire(Library, data["library"]))
        for event, end in events:
            with _readable(path, event):
                self._take(event.event, event.data, offset << _SHIFT)
            offset = end
        for place in self._free.values():
            status = self._data(place)["status"]
            self.left_out[NO_GROUP if status in ("ok", "failed") else status] += 1
        self._free.clear()

    @property
    def name(self) -> str:
        """See `ExportSource`."""
        return f"run {self.run_id}"

    @property
    def run_id(self) -> str:
        """See `ExportSource`."""
        return self.header.run_id

    @property
    def task_id(self) -> str:
        """See `ExportSource`."""
        return self.header.task_id

    @property
    def actor(self) -> str:
        """Name of the actor; empty in older journals."""
        role = self.header.identities.get("actor") or {}
        return str(role.get("name", ""))

    def groups(self) -> Iterator[tuple[str, str]]:
        """Yield the ids of each group of the train split and its scenario, in order of epoch and scenario."""
        for phase in self.phases:
            for scenario_id in phase.scenarios:
                id_ = group_id(self.header.run_id, phase, scenario_id)
                if id_ in self._groups and self.scenarios[scenario_id].split == "train":
                    yield id_, scenario_id

    def flags(self, id_: str) -> int:
        """Return the flags of a group."""
        return self._groups[id_][0] & (1 << _SHIFT) - 1

    def load(self, id_: str) -> Group:
        """Return a group with its rollouts; raises JournalError where it cannot be read."""
        group_place, *places = self._groups[id_]
        try:
            data = self._data(group_place)
            members = data.pop("rollouts")
            rollouts = [
                from_wire(Rollout, self._data(place) | {"status": status})
                for place, (_, status) in zip(places, members, strict=True)
            ]
            group = replace(from_wire(Group, data | {"rollouts": []}), rollouts=tuple(rollouts))
            if [score.rollout_id for score in group.scores] != [rollout.rollout_id for rollout in rollouts]:
                raise ValueError("its scores are of other rollouts")
            if group.scenario_id not in self.scenarios:
                raise ValueError(f"the run has no scenario {group.scenario_id!r}")
            return group
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise JournalError(f"{self.path}: group {id_!r} cannot be read: {describe(error)}") from error

    def prompt(self, scenario: Scenario, rollout: Rollout) -> Prompt | None:
        """See `ExportSource`."""
        return prompt_again(self.packs, self.lessons, scenario, rollout)

    def bare_prompt(self, scenario: Scenario) -> Prompt:
        """See `ExportSource`."""
        return render_prompt(pack_for(self.packs, scenario.domain), scenario, ())

    def _take(self, kind: str, data: Mapping[str, Any], place: int) -> None:
        match kind:
            case "rollout" if data["mode"] == "train":
                self.left_out[MADE_AGAIN] += self._forget(data)
                self._free[data["rollout_id"]] = place | _flags(data["frames"])
            case "abandoned" if data["mode"] == "train":
                self._forget(data)
                self.left_out[CANCELLED] += 1
            case "group" if data["mode"] == "train":
                self._gather(data, place)
            case "revision":
                self._learn(from_wire(Revision, data).library)
            case "resume":
                self.status = ""
            case "finish":
                self.status = data["status"]

    def _learn(self, library: Library) -> None:
        for lesson in library.experiences:
            self.lessons.setdefault(lesson.id, lesson)

    def _gather(self, data: Mapping[str, Any], place: int) -> None:
        """Take the scores of a group, in place of older ones."""
        self._open(data["group_id"])
        places = [self._free.pop(member) for member, _ in data["rollouts"]]
        for member in places:
            place |= member & (1 << _SHIFT) - 1
        self._groups[data["group_id"]] = array("Q", [place, *places])

    def _forget(self, data: Mapping[str, Any]) -> bool:
        """Drop a rollout that is made again, and the scores of its group; returns whether it was there."""
        id_, group = data["rollout_id"], data["group_id"]
        if id_ not in self._free and id_ in self._members(group):
            self._open(group)
        return self._free.pop(id_, None) is not None

    def _open(self, group: str) -> None:
        """Drop the scores of a group, if it has any; its rollouts stay."""
        members = self._members(group)
        self._free |= zip(members, self._groups.pop(group, array("Q"))[1:], strict=True)

    def _members(self, group: str) -> list[str]:
        places = self._groups.get(group)
        return [id_ for id_, _ in self._data(places[0])["rollouts"]] if places is not None else []

    def _data(self, place: int) -> dict[str, Any]:
        self._file.seek(place >> _SHIFT)
        event = decode(self._file.readline()[:-1])
        if event is None:
            raise JournalError(f"{self.path} changed while it was read; wait until its run has ended")
        data: dict[str, Any] = event.data
        return data


@contextmanager
def _readable(path: Path, event: Event | None) -> Iterator[None]:
    """Raise JournalError where an event does not hold what it has to."""
    try:
        yield
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        where = f"{path}:{event.n}: event {event.event!r}" if event else path
        raise JournalError(f"{where} cannot be read: {describe(error)}") from error


@contextmanager
def open_index(folder: Path) -> Iterator[RunIndex]:
    """Open the journal of the run in `folder`; raises JournalError, and ExportError if it is unfinished."""
    path = folder / JOURNAL
    try:
        file = open_plain(path)
    except OSError as error:
        raise JournalError(f"cannot read the journal {path}: {error}") from error
    with file:
        if is_open(path):
            raise ExportError(f"run {folder.name} is still running; export it when it has ended")
        index = RunIndex(path, file)
        if index.status != "complete":
            raise ExportError(
                f"run {index.header.run_id} is {index.status or 'killed'}, so that groups may be missing; "
                f"finish it with pytest --tfgrpo --tfgrpo-resume={index.header.run_id}"
            )
        yield index


def _flags(frames: list[dict[str, Any]]) -> int:
    flags = 0
    for frame in frames:
        if frame["kind"] == "tool":
            flags |= CALLS_TOOLS
        elif sampled := frame.get("sampled"):
            flags |= HAS_LOGPROBS if sampled.get("logprobs") is not None else 0
            flags |= HAS_TOKEN_IDS if sampled.get("token_ids") is not None else 0
    return flags

"""The figures of a run that goes on, event by event; texts of others are made printable as they are shown."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
from math import fsum
from typing import Any

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.settings.agents import OPTIMIZER
from pytest_tfgrpo.core.settings.learning import EVAL_ROLLOUTS
from pytest_tfgrpo.core.settings.runs import BUDGET_TOKENS, BUDGET_USD, CONCURRENCY
from pytest_tfgrpo.core.texts.text import line, plural
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.limits.concurrency import most_at_once
from pytest_tfgrpo.report.live_view.phase_figures import PhaseFigures
from pytest_tfgrpo.runs.journal.journal import Event

FAILURES, LESSONS, LOWEST, TILES, DOMAINS = 20, 40, 30, 2_000, 48
"""Most rows of what is shown of a run; a page says how many it leaves out."""
TEACHING = {"llm": "the teacher writes lessons"}
OTHERWISE = "its attempts become lessons"
"""What goes on once an epoch has made its rollouts, by the optimizer."""
RECENT = 256
"""Rollouts that the pace is measured on."""
LONGEST = 300
"""Characters of a text of others that are shown."""
KEPT = 4_000
"""Characters of one that are kept: few failures are shown of those that come."""


@dataclass(frozen=True, slots=True)
class ScenarioNames:
    """The scenarios of a run by their numbers."""

    ids: Sequence[str]
    domains: Sequence[str]
    places: Mapping[str, int]
    """Numbers by id."""

    @classmethod
    def of(cls, scenarios: Sequence[Mapping[str, Any]]) -> ScenarioNames:
        """Read those of a header; raises KeyError and TypeError."""
        ids = [s["id"] for s in scenarios]
        return cls(ids, [s["domain"] for s in scenarios], {id_: n for n, id_ in enumerate(ids)})

    def id(self, place: int) -> str:
        """Return the id of a scenario as it is shown."""
        return line(self.ids[place], LONGEST)


class LessonFigures:
    """What a run has learned so far."""

    def __init__(self, library: Mapping[str, Any]) -> None:
        """Start with the library of a header."""
        self.candidate: int | None = None
        """Lessons that the dev split is about to decide on."""
        self._texts = _texts(library)
        self._latest: deque[dict[str, Json]] = deque(maxlen=LESSONS)
        self._learned = 0

    def revise(self, data: Mapping[str, Any]) -> int:
        """Take a revision of the library; return how many lessons there are now."""
        self.candidate = None
        for operation in data["applied"]:
            new, targets = operation["experience"], operation["targets"]
            text = self._texts.get(targets[0], targets[0]) if new is None else new["summary32"]
            self._learned += 1
            self._latest.append(
                {
                    "epoch": data["epoch"],
                    "kind": str(operation["kind"]),
                    "polarity": "" if new is None else str(new["polarity"]),
                    "domain": "" if new is None else line(new["domain"], LONGEST),
                    "text": line(text, LONGEST),
                }
            )
        self._texts = _texts(data["library"])
        return len(self._texts)

    def state(self) -> dict[str, Json]:
        """Return what a reader sees of it, the latest first."""
        return {
            "lessons": list(self._latest)[::-1],
            "learned": self._learned,
            "candidate": self.candidate,
        }


class RunFigures:
    """What is known of a run so far."""

    def __init__(self, header: Mapping[str, Any]) -> None:
        """Start with the header of a journal; raises KeyError, TypeError, ValueError on a bad one."""
        self._header = {key: header[key] for key in ("run_id", "task_id", "started_at")}
        settings = header["settings"]
        self._budget = {"usd": BUDGET_USD.of(settings), "tokens": BUDGET_TOKENS.of(settings)}
        self._most_at_once = most_at_once(CONCURRENCY.recorded(settings) or 0)
        self._names = ScenarioNames.of(header["scenarios"])
        self.phases = self._planned(header["phases"], 2 * int(EVAL_ROLLOUTS.of(settings) or 1))
        self._by_key = {(phase.plan.epoch, phase.plan.is_dev): phase for phase in self.phases}
        self._current = self.phases[0] if self.phases else None
        self._failures: deque[tuple[int, str, int, str, str]] = deque(maxlen=FAILURES)
        self._lessons = LessonFigures(header["library"])
        self._teaching = TEACHING.get(OPTIMIZER.of(settings), OTHERWISE)
        self._failed = 0
        self._recent: deque[tuple[float, float]] = deque(maxlen=RECENT)
        self._seen_at = header["started_at"]
        self._warnings: Sequence[str] = header.get("warnings", ())
        self.finish: Mapping[str, Any] | None = None

    def _planned(self, phases: Sequence[Mapping[str, Any]], dev_rollouts: int) -> list[PhaseFigures]:
        found = []
        for plan in phases:
            found.append(PhaseFigures(plan, self._names.places))
            if plan.get("dev"):
                found.append(PhaseFigures(plan, self._names.places, dev_rollouts=dev_rollouts))
        return found

    def take(self, event: Event) -> None:
        """Count an event; raises KeyError, TypeError and ValueError where it does not fit the run."""
        data = event.data
        self._seen_at = event.at or self._seen_at
        match event.event:
            case "rollout":
                self._rollout(data, event.at)
            case "group":
                self._group(data)
            case "abandoned":
                phase = self._phase(data)
                if phase.rollout(self._names.places[data["scenario_id"]], data["index"], ""):
                    phase.pay(data["tokens"], data["cost_usd"])
            case "call":
                self._call(data)
            case "candidate":
                self._lessons.candidate = len(data["applied"])
            case "revision":
                self._by_key[data["epoch"], False].lessons = self._lessons.revise(data)
            case "settled":
                self._by_key[data["epoch"], False].settled = True
            case "phase":
                self._end(data["phase"]["epoch"], str(data["status"]), line(data["reason"], LONGEST))
            case "resume":
                self._resume()
            case "finish":
                self.finish, self._warnings = data, data["warnings"]

    def _phase(self, data: Mapping[str, Any]) -> PhaseFigures:
        return self._by_key[data["epoch"], data["mode"] == "dev"]

    def _rollout(self, data: Mapping[str, Any], at: str) -> None:
        phase, place = self._phase(data), self._names.places[data["scenario_id"]]
        phase.rollout(place, data["index"], data["status"])
        phase.pay(data["tokens"], data["cost_usd"])
        if not phase.plan.concurrent:
            self._current = phase
        if at:
            self._recent.append((_seconds(at), float(data["latency_ms"]) / 1000))
        if (text := _why(data)) is not None:
            self._failed += 1
            kind = "wrong" if data["status"] == "ok" else data["status"]
            self._failures.append((place, phase.plan.label, data["index"], kind, text[:KEPT]))

    def _group(self, data: Mapping[str, Any]) -> None:
        place = self._names.places[data["scenario_id"]]
        own = self._phase(data)
        own.group(place, data["scores"])
        for id_, status in data["rollouts"]:  # a test function or the judge may have changed it
            own.rollout(place, int(id_.rpartition(".r")[2]), status)
        for phase in self.phases:
            if phase.plan.concurrent and data.get("as_placebo" if phase.plan.mode == "placebo" else "shared"):
                phase.share(place, data["scores"])

    def _call(self, data: Mapping[str, Any]) -> None:
        phase, usage = self._by_key[data["epoch"], False], data["usage"]
        phase.calls += 1
        phase.pay(0 if usage is None else usage["prompt"] + usage["completion"], data["cost_usd"])

    def _end(self, epoch: int, status: str, reason: str) -> None:
        for phase in (self._by_key.get((epoch, False)), self._by_key.get((epoch, True))):
            if phase is not None:
                phase.status, phase.reason = status, reason

    def _resume(self) -> None:
        """Go on after an interruption: what did not end goes on, and the time between counts for nothing."""
        self.finish = None
        self._recent.clear()
        for phase in self.phases:
            if phase.status != "complete":
                phase.status = phase.reason = ""

    def pace(self, now: float) -> tuple[float | None, float | None]:
        """Return the seconds that the planned rollouts still take, and how many are made at a time.

        Both are measured on the latest rollouts; None while there are too few. What learning and the dev
        split take is in neither.
        """
        left = sum(phase.left for phase in self.phases)
        if len(self._recent) < 2 or not left:
            return None, None
        first = self._recent[0][0]
        span = max(now, self._recent[-1][0]) - first
        if span <= 0:
            return None, None
        rate = (len(self._recent) - 1) / span
        at_once = rate * fsum(latency for _, latency in self._recent) / len(self._recent)
        most = min(left, self._most_at_once or left)
        return left / rate, min(most, max(1.0, at_once))

    def names(self) -> list[str]:
        """Return the ids of the scenarios that the current phase draws, in order."""
        places = islice(self._current.plan.rows, TILES) if self._current else ()
        return [self._names.id(place) for place in places]

    def state(self, now: float) -> dict[str, Json]:
        """Return what a reader sees at the time `now`, seconds since 1970; its size has a bound."""
        left_s, at_once = self.pace(now) if self.finish is None else (None, None)
        rows = [phase.row() | {"doing": self._doing(phase)} for phase in self.phases]
        finish = self.finish or {}
        return {
            **{key: line(str(value), LONGEST) for key, value in self._header.items()},
            "elapsed_s": max(0.0, (_seconds(self._seen_at) if self.finish else now) - self._started()),
            "finish": line(f"{finish.get('status', '')} {finish.get('reason', '')}".strip(), LONGEST),
            "phases": rows,
            "current": self.phases.index(self._current) if self._current else None,
            "left_s": left_s,
            "at_once": at_once,
            "usd": fsum(phase.usd for phase in self.phases),
            "tokens": sum(phase.tokens for phase in self.phases),
            "unknown": sum(phase.unknown for phase in self.phases),
            "budget": self._budget,
            **self._by_scenario(),
            "failures": self._latest_failures(),
            "failed": self._failed,
            **self._lessons.state(),
            "warnings": [line(str(text), 3 * LONGEST) for text in self._warnings],
        }

    def _doing(self, phase: PhaseFigures) -> str:
        """Return what goes on in a phase whose rollouts are all made; else empty."""
        tried = self._lessons.candidate
        if not phase.learns or self.finish is not None:
            return ""
        return self._teaching if tried is None else f"the dev split tries {plural(tried, 'change')}"

    def _latest_failures(self) -> list[dict[str, Json]]:
        return [
            {
                "scenario": self._names.id(place),
                "phase": phase,
                "index": index,
                "kind": kind,
                "text": line(text, LONGEST),
            }
            for place, phase, index, kind, text in reversed(self._failures)
        ]

    def _started(self) -> float:
        return _seconds(self._header["started_at"])

    def _by_scenario(self) -> dict[str, Json]:
        """Return the scenarios of the current phase: a mark each, the lowest, and the domains."""
        phase = self._current
        if phase is None:
            return {"marks": "", "lowest": [], "domains": []}
        scored = [(mean, place) for place in phase.plan.rows if (mean := phase.mean_of(place)) is not None]
        lowest = sorted(row for row in scored if row[0] < 1)[:LOWEST]
        control = next((p for p in self.phases if p.plan.mode in ("early", "baseline")), None)
        domains: dict[str, list[list[float]]] = {}
        for place in phase.plan.rows:
            known = domains.setdefault(self._names.domains[place], [[], [], []])
            known[0].append(place)
            if (mean := phase.mean_of(place)) is not None:
                known[1].append(mean)
            if control is not None and control is not phase and (start := control.mean_of(place)) is not None:
                known[2].append(start)
        return {
            "marks": phase.marks(TILES),
            "lowest": [
                [self._names.id(place), line(self._names.domains[place], LONGEST), mean]
                for mean, place in lowest
            ],
            "domains": [
                [line(name, LONGEST), len(places), len(means), _mean(means), _mean(starts)]
                for name, (places, means, starts) in sorted(domains.items())[:DOMAINS]
            ],
        }


def _mean(values: Sequence[float]) -> float | None:
    return fsum(values) / len(values) if values else None


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp() if at else 0.0


def _texts(library: Mapping[str, Any]) -> dict[str, str]:
    """Return the active lessons by id."""
    return {lesson["id"]: lesson["summary32"] for lesson in library["experiences"]}


def _why(rollout: Mapping[str, Any]) -> str | None:
    """Return what went wrong with a rollout; None where nothing did."""
    if rollout["status"] != "ok":
        failure = rollout["failure"] or {"code": rollout["status"], "message": ""}
        return f"{failure['code']}: {failure['message']}"
    short = next((check for check in rollout["checks"] if check["credit"] < 1), None)
    return None if short is None else f"{short['kind']}: {short['reason']}"

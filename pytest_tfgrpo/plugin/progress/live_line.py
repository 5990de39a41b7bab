"""The live line: what a run does right now, in parts that give way where the terminal is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.core.texts.text import count, line, money, number, plural
from pytest_tfgrpo.engine.gauge import Reading
from pytest_tfgrpo.plugin.progress.remaining import Plan, Remaining, remaining

HELD_S = 1.0
"""A pause of an endpoint that is worth showing."""


class Part(NamedTuple):
    """A piece of the line."""

    text: str
    short: str = ""
    """What stands for it where there is no room."""
    place: str = ""
    """Pieces with the lowest digit are shortened first; those without never."""
    colour: str = ""
    """As pytest names it."""


class Moment(NamedTuple):
    """What a screen shows of one moment; of strings and numbers, as it may go to another process."""

    at_s: float
    """Seconds since the run began."""
    share: float
    """Which part of its rollouts is done, from 0 to 1."""
    parts: Sequence[Part]


def moment_of(now: Reading, plan: Plan, name: str = "tfgrpo") -> Moment:
    """Return the moment of a reading; `name` is what the line begins with."""
    return Moment(now.at_s, plan.share(now), _parts(now, plan, name))


def _parts(now: Reading, plan: Plan, name: str) -> list[Part]:
    where = f"{now.step}/{len(plan.steps)} "
    parts = [Part(f"{name} ", _short(name), "1"), Part(where, where), *_stage(now)]
    calls = now.asked.get("judge", 0)
    if calls:
        parts.append(Part(f", {calls} at the judge", "", "4"))
    if now.stage == "sweep" and now.sweep.mean is not None:
        parts.append(Part(f", mean {number(now.sweep.mean)}", f", mean {number(now.sweep.mean, 2)}", "2"))
    if now.sweep.failed:
        told = f", {now.sweep.failed} no answer"
        parts.append(Part(told, told, colour="yellow"))
    if now.sweep.errors:
        told = f", {plural(now.sweep.errors, 'error')}"
        parts.append(Part(told, told, colour="red"))
    return [*parts, *_endpoints(now), *_cost(now), *_left(remaining(now, plan))]


def _endpoints(now: Reading) -> list[Part]:
    """Return what calls wait for: endpoints that adapt, with their places and pauses, and batches."""
    parts = []
    for state in now.allowed:
        name = f"{line(state.endpoint, 20)} " if len(now.allowed) > 1 else "calls "
        parts.append(Part(f", {name}{state.in_flight}/{state.limit}", "", "8"))
        if state.held_s >= HELD_S:
            told = f", {name}held {clock(state.held_s)}"
            parts.append(Part(told, told, colour="yellow"))
    if now.batches:
        calls, done = sum(one.calls for one in now.batches), sum(one.done for one in now.batches)
        batches = "a batch" if len(now.batches) == 1 else f"{len(now.batches)} batches"
        parts.append(
            Part(f", {batches} of {plural(calls, 'call')}, {done} done", f", batch {done}/{calls}", "5")
        )
    return parts


def _short(name: str) -> str:
    """Return the agent in a name such as ``tfgrpo gpt-x``; nothing of ``tfgrpo`` alone."""
    agent = name.partition(" ")[2]
    return f"{agent} " if agent else ""


def _stage(now: Reading) -> list[Part]:
    """Return what goes on: a sweep, an epoch that learns, or what comes before the first answer."""
    if now.phase is None or now.stage == "starting":
        asked = sum(now.asked.values())
        told = "checking the models" if asked else "starting"
        return [Part(told, told, colour="bold"), Part(f", {clock(now.since_s)}", "", "5")]
    name = title(now.phase)
    parts = [Part(name, name, colour="bold")]
    if now.stage == "learning":
        told = f": learning from {plural(now.groups, 'group')}"
        parts.append(Part(told, ": learning", "5"))
        if now.answered:
            parts.append(Part(f", {plural(now.answered, 'answer')}", "", "6"))
        asked = now.asked.get("learn", 0)
        parts += [Part(f", {asked} in flight", f", {asked} in flight")] if asked else []
        return [*parts, Part(f", {clock(now.since_s)}", "", "3")]
    done, planned = now.sweep.done, now.sweep.planned
    parts.append(Part(f" {done} of {planned}", f" {done}/{planned}", "3"))
    if now.attempts.ages_s:
        waits = f" for {clock(max(now.attempts.ages_s))}" if now.attempts.mean_s is None else ""
        parts.append(Part(f", {len(now.attempts.ages_s)} in flight{waits}", "", "8"))
    return parts


def title(phase: Phase) -> str:
    """Return how a reader calls a sweep."""
    return f"epoch{phase.epoch} dev split" if phase.mode == "dev" else phase.label


def _cost(now: Reading) -> list[Part]:
    """Return what the run has cost so far, and what is left of each budget."""
    parts = []
    if "usd" in now.limits:
        spent, limit = now.limits["usd"]
        left = money(max(limit - spent, 0.0))
        parts.append(Part(f", {money(spent)} ({left} left)", f", {left} left", "6"))
    elif now.spent_usd:
        parts.append(Part(f", {money(now.spent_usd)}", "", "7"))
    if "tokens" in now.limits:
        spent, limit = now.limits["tokens"]
        left = f"{count(max(limit - spent, 0.0))} tokens left"
        parts.append(Part(f", {left}", f", {left}"))
    if "s" in now.limits:
        spent, limit = now.limits["s"]
        parts.append(Part(f", budget {clock(max(limit - spent, 0.0))}", "", "7"))
    return parts


def _left(known: Remaining | None) -> list[Part]:
    if known is None:
        return []
    told = f", ETA {clock(_rounded(known.seconds))}{'' if known.complete else '+'}"
    return [Part(told, told, colour="cyan")]


def _rounded(seconds: float) -> float:
    """Return an estimate without digits that it does not have."""
    step = 60 if seconds >= 3600 else 5 if seconds >= 60 else 1
    return step * round(seconds / step)


def clock(seconds: float) -> str:
    """Return a span of time: ``0:12``, ``4:10``, ``1:04:10``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def fitted(parts: Sequence[Part], width: int) -> Sequence[Part]:
    """Return the parts with as many shortened as it takes to fit; what then is too long is cut."""
    by_rank = sorted((n for n, part in enumerate(parts) if part.place), key=lambda n: parts[n].place)
    for n in by_rank:
        if sum(len(part.text) for part in parts) <= width:
            return parts
        parts = [part._replace(text=part.short) if m == n else part for m, part in enumerate(parts)]
    room, kept = width, []
    for part in parts:
        kept.append(part._replace(text=part.text[: max(room, 0)]))
        room -= len(part.text)
    return kept

"""Longer texts: a failing scenario and a rollout; foreign text is made printable."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from pytest_tfgrpo.core.conversations import USER, turns_of, without_repeats
from pytest_tfgrpo.core.records import CheckResult, Frame, Group, JudgeResult, Rollout, Score
from pytest_tfgrpo.core.sampled import Sampled
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.texts.text import TRACEBACK, block, duration, gist, line, money, number, plural
from pytest_tfgrpo.core.voices import said
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.report.failures.failure_labels import reason_of
from pytest_tfgrpo.report.rollout_summary import summarise

SHORT, LONG = 1000, 20_000
"""Characters of one text that a failing item, and a whole trajectory, show."""


def failure(
    scenario: Scenario, group: Group, command: str, *, least: float | None = None, recorded: bool = True
) -> str:
    """Return the text of a failing item: prompt, answer, failed checks, seed, and how to run it again.

    Of the group's rollouts the worst is shown, an error only when all are errors. `least` is the score needed
    where the scenario does not say, by default 1. `recorded` says that the run is on file, where
    `tfgrpo show` finds it.
    """
    rollout = _worst(group)
    wanted = next(one for one in (scenario.min_score, least, 1.0) if one is not None)
    verdict = (
        f"gt_score {number(group.gt_mean)}, at least {wanted:g} required"
        if any(score.gt_score is not None for score in group.scores)
        else f"every rollout is an error: {fault(rollout)}"
    )
    each = ", ".join("error" if s.gt_score is None else number(s.gt_score) for s in group.scores)
    lines = [
        f"{scenario.id}: {verdict}",
        f"rollouts: {each}",
        *about(scenario, rollout, command, recorded=recorded),
    ]
    if scenario.source:
        lines.insert(1, f"scenario: {line(scenario.source)}")
    return "\n".join(lines)


def about(scenario: Scenario, rollout: Rollout, command: str, *, recorded: bool) -> list[str]:
    """Return what a failing item shows of a rollout: prompt, answer, failed checks, how to run it again."""
    return [
        *_asked(scenario, rollout),
        f"rollout {rollout.rollout_id}, seed {rollout.seed}, temperature {rollout.temperature:g}",
        f"in short: {summarise(rollout, scenario)}",
        *_outcome(rollout, SHORT),
        f"run it again: {line(command)}",
        *([f"see it in full: tfgrpo show {rollout.rollout_id}"] if recorded else []),
    ]


def reason(scenario: Scenario, group: Group) -> str:
    """Return in one line why an item fails: the reason of its worst rollout, and how many there are."""
    rollout = _worst(group)
    shown = fault(rollout) if rollout.failure is not None else reason_of(rollout, scenario)
    many = f" (mean {number(group.gt_mean)} of {len(group.rollouts)} rollouts)"
    return shown + (many if len(group.rollouts) > 1 else "")


def _worst(group: Group) -> Rollout:
    """Return the rollout with the lowest score; one that is an error only where all are."""
    pairs = zip(group.rollouts, group.scores, strict=True)
    scored = [(score.gt_score, rollout) for rollout, score in pairs if score.gt_score is not None]
    return min(scored, key=lambda pair: pair[0])[1] if scored else group.rollouts[0]


def failure_again(scenario: Scenario, group: Group, first: str) -> str:
    """Return the text of an item whose rollouts all ended with the error that `first` has already shown."""
    return (
        f"{scenario.id}: every rollout is an error: {fault(group.rollouts[0])}\n"
        f"the same as {line(first)}; see it in full: tfgrpo show {group.rollouts[0].rollout_id}"
    )


def fault(rollout: Rollout) -> str:
    """Return code and message of a rollout without an answer, on one line."""
    found = rollout.failure
    return "" if found is None else f"{line(found.code, 40)}: {gist(found.message, SHORT)}"


def rollout_text(rollout: Rollout, score: Score | None = None, scenario: Scenario | None = None) -> str:
    """Return a whole trajectory: every frame with input and output, answer, checks and scores."""
    lines = [
        f"rollout {rollout.rollout_id}: {rollout.mode}, epoch {rollout.epoch}, "
        f"scenario {rollout.scenario_id}",
        f"seed {rollout.seed}, temperature {rollout.temperature:g}, {_price(rollout)}",
    ]
    if score is not None:
        lines.append(
            f"gt_score {number(score.gt_score)}, reward {number(score.reward)}, "
            f"relative rank {number(score.relative_rank)}, advantage {number(score.advantage)}"
            + (f" ({score.advantage_reason})" if score.advantage_reason else "")
        )
        lines += _named(score, judged=rollout.opinion is not None)
        lines += _of_sources(rollout)
    if scenario is not None:
        lines.append(f"in short: {summarise(rollout, scenario)}")
    if rollout.experiences:
        lines.append(f"lessons in its prompt: {', '.join(rollout.experiences)}")
    if scenario is not None and not any(frame.kind == USER for frame in rollout.frames):
        lines += _section("prompt", _prompt(scenario), LONG)
    for n, frame in enumerate(without_repeats(rollout.frames), 1):
        lines += _frame(n, frame)
    return "\n".join([*lines, *_outcome(rollout, LONG, every=True)])


def _named(score: Score, *, judged: bool) -> Iterator[str]:
    """Yield what additional rewarders score a rollout, and why; the judge has its own line."""
    for name, value in score.extra.items():
        if judged and name == "judge":
            continue
        head, *more = block(score.evidence.get(name, ""), LONG).splitlines() or [""]
        yield f"  {line(name)} {number(value)}" + (f": {head}" if head else "")
        yield from _indented(more, 4)


def _of_sources(rollout: Rollout) -> Iterator[str]:
    """Yield what the criteria of the judge came to, and what the test function scored by name and why."""
    if rollout.opinion is not None:
        for name, share in rollout.opinion.criteria.items():
            yield f"  judge.{line(name)} {number(share)}"
    for one in rollout.scores:
        head, *more = block(one.why, LONG).splitlines() or [""]
        unit = f" {line(one.scale.unit)}" if one.scale.unit else ""
        yield f"  test.{line(one.name)} {number(one.value)}{unit}" + (f": {head}" if head else "")
        yield from _indented(more, 4)


def _asked(scenario: Scenario, rollout: Rollout) -> list[str]:
    """Return the prompt, or the conversation up to its last answer."""
    turns = turns_of(rollout.frames, rollout.answer)
    if not turns:
        return _section("prompt", _prompt(scenario), SHORT)
    told = [f"{said('user:', turn.user)}\n{said('agent:', turn.answer)}" for turn in turns[:-1]]
    return _section("conversation", "\n".join([*told, said("user:", turns[-1].user)]), SHORT)


def _prompt(scenario: Scenario) -> str:
    data = [] if scenario.input is None else [_json(scenario.input)]
    return "\n".join([*([scenario.prompt] if scenario.prompt else []), *data])


def _price(rollout: Rollout) -> str:
    return (
        f"{plural(rollout.tokens, 'token')}, cost {money(rollout.cost_usd)}, {duration(rollout.latency_ms)}"
    )


def _frame(n: int, frame: Frame) -> Iterator[str]:
    if frame.kind == USER:
        who = "" if frame.name == "script" else f" ({line(frame.name, 80)})"
        if isinstance(frame.input, str):
            yield from _section("answer", frame.input, LONG)
        yield from _section(f"{n}. user{who}", frame.output, LONG)
        return
    yield (
        f"{n}. {frame.kind} {line(frame.name, 80)}: {plural(frame.tokens, 'token')}, "
        f"cost {money(frame.cost_usd)}, {duration(frame.latency_ms)}"
    )
    parts = (("input", None if frame.input is None else _json(frame.input)), ("output", frame.output))
    if frame.thoughts:
        yield from _indented(_section("thoughts", frame.thoughts, LONG))
    for title, text in (*parts, ("error", frame.error), ("extra", _json(frame.extra) if frame.extra else "")):
        if text:
            yield from _indented(_section(title, text, LONG))
    if frame.sampled is not None:
        yield f"  {_sampled(frame.sampled)}"


def _sampled(sampled: Sampled) -> str:
    heat = "" if sampled.temperature is None else f", temperature {sampled.temperature:g}"
    if sampled.logprobs is None:
        return f"log-probabilities: none ({sampled.reason}){heat}"
    ids = "" if sampled.token_ids is None else " with ids"
    return f"log-probabilities: {sampled.kind}, {plural(len(sampled.logprobs), 'token')}{ids}{heat}"


def _outcome(rollout: Rollout, limit: int, *, every: bool = False) -> Iterator[str]:
    """Yield how a rollout ended, its answer, and its checks: those that failed, or every one."""
    if rollout.failure is not None:
        message = rollout.failure.message
        yield f"{rollout.status}: {line(rollout.failure.code, 40)}: {gist(message, limit)}"
        if TRACEBACK in message:
            yield from _section("traceback, its end", message[-limit:], limit)
    if rollout.answer or rollout.status == "ok":
        yield from _section("answer", rollout.answer, limit)
    if every and rollout.extra:
        yield from _section("extra", _json(rollout.extra), limit)
    if rollout.opinion is not None:
        yield from _opinion(rollout.opinion, limit if rollout.failure is None else 0)
    checks = [check for check in rollout.checks if every or not check.passed]
    if checks:
        yield "checks:" if every else "failed checks:"
        for check in checks:
            yield from _check(check, limit)


def _opinion(opinion: JudgeResult, limit: int) -> Iterator[str]:
    """Yield a judge's score and words; without a limit only the score, as a failure has the words already."""
    agreement = "" if opinion.agreement is None else f", agreement {opinion.agreement:.3f}"
    yield f"judge {number(opinion.score)}: {len(opinion.votes)} of {opinion.asked} votes{agreement}"
    if limit:
        yield from _indented(block(opinion.reason, limit).splitlines())


def _check(check: CheckResult, limit: int) -> Sequence[str]:
    share = "passed" if check.passed else "failed" if check.credit == 0 else f"credit {check.credit:.2f}"
    head, *more = block(check.reason, limit).splitlines() or [""]
    return [f"  {line(check.kind, 40)} {share}" + (f": {head}" if head else ""), *_indented(more, 4)]


def _section(title: str, text: str, limit: int) -> list[str]:
    return [f"{title}:", *_indented(block(text, limit).splitlines())]


def _indented(lines: Sequence[str], by: int = 2) -> list[str]:
    return [(" " * by + text).rstrip() for text in lines]


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)

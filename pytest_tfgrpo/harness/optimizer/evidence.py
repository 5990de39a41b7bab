"""Evidence: the attempts of an epoch by kind of task, and what the better did differently (decision 12)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from pytest_tfgrpo.core.records import Frame, Group, Rollout, Scenario
from pytest_tfgrpo.core.words import content
from pytest_tfgrpo.harness.optimizer.wording import wording

SAME_TASK = 0.25
"""Shared content words (Jaccard) from which tasks without family, with equal winners, are of one kind."""
AS_GOOD = 0.05
"""Difference of mean rewards under which the cheaper way of two is preferred."""
MIN_CONTRAST = 0.5
"""Difference in share between winners and losers from which a habit tells them apart."""

_TOOL_NAME = re.compile(r"[A-Za-z_][\w.-]{0,63}", re.ASCII)
_NUMBER = re.compile(r"[-+]?\d[\d,]{0,30}(?:\.\d{1,30})?%?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One scored rollout of a group with spread."""

    group_id: str
    rollout: Rollout
    reward: float
    gt_score: float
    relative_rank: float
    sign: int
    """1 for a winner, -1 for a loser, 0 in between."""
    tools: tuple[str, ...]
    """Tools whose calls worked, in order, repeats in a row counted once; empty when it used none."""
    tools_tried: frozenset[str]

    @property
    def tokens(self) -> int:
        """Tokens of its tool calls."""
        return sum(frame.tokens for frame in tool_frames(self.rollout))


@dataclass(slots=True)
class Kind:
    """A kind of task: the scenarios of a family, or similar tasks that the same tools solved."""

    domain: str
    prompts: list[str]
    """Wordings of its train tasks, without quoted data."""
    attempts: list[Attempt] = field(default_factory=list)
    cluster: bool = False
    """True when it was found by similarity, not given as a family."""
    bags: list[frozenset[str]] = field(default_factory=list)
    """Content stems of the prompts of a cluster."""
    ways: set[tuple[str, ...]] = field(default_factory=set)
    """Tools of the winners of a cluster."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A difference between winners and losers of a kind."""

    advice: str
    """In the imperative, without full stop."""
    attempts: tuple[Attempt, ...]
    """All attempts that did what it speaks of, whatever came of it."""


def tool_frames(rollout: Rollout) -> Iterable[Frame]:
    """Yield the tool calls of `rollout` whose tools have a name that a lesson can carry."""
    return (f for f in rollout.frames if f.kind == "tool" and _TOOL_NAME.fullmatch(f.name))


def attempts_of(group: Group) -> list[Attempt]:
    """Return the scored rollouts of `group`, errors left out, as winners and losers."""
    scored = [
        (rollout, score, score.reward if score.reward is not None else score.gt_score)
        for rollout, score in zip(group.rollouts, group.scores, strict=True)
    ]
    known = [(rollout, score, reward) for rollout, score, reward in scored if reward is not None]
    mean = sum(reward for _, _, reward in known) / len(known) if known else 0.0
    return [
        Attempt(
            group_id=group.group_id,
            rollout=rollout,
            reward=reward,
            gt_score=reward if score.gt_score is None else score.gt_score,
            relative_rank=0.5 if score.relative_rank is None else score.relative_rank,
            sign=(reward > mean + 1e-9) - (reward < mean - 1e-9),
            tools=tuple(name for name, _ in groupby(f.name for f in tool_frames(rollout) if f.error is None)),
            tools_tried=frozenset(f.name for f in tool_frames(rollout)),
        )
        for rollout, score, reward in known
    ]


def kinds_of(groups: Iterable[Group], scenarios: Mapping[str, Scenario]) -> list[Kind]:
    """Return the kinds of the train tasks: all families, and clusters of the groups without a family."""
    families: dict[tuple[str, str], Kind] = {}
    for scenario in scenarios.values():
        if scenario.family:
            key = (scenario.domain, scenario.family)
            kind = families.setdefault(key, Kind(scenario.domain, []))
            kind.prompts.append(wording(scenario.prompt))
    clusters: list[Kind] = []
    for group in groups:
        scenario = scenarios[group.scenario_id]
        attempts = attempts_of(group)
        if scenario.family:
            families[scenario.domain, scenario.family].attempts += attempts
        else:
            ways = {a.tools for a in attempts if a.sign > 0}
            prompt = wording(scenario.prompt)
            kind = _cluster(clusters, scenario, content(prompt), ways)
            kind.prompts.append(prompt)
            kind.bags.append(content(prompt))
            kind.ways |= ways
            kind.attempts += attempts
    return [*families.values(), *clusters]


def _cluster(
    clusters: list[Kind], scenario: Scenario, bag: frozenset[str], ways: set[tuple[str, ...]]
) -> Kind:
    """Return the cluster of a task without family; a new one is added to `clusters`."""
    for kind in clusters:
        alike = kind.domain == scenario.domain and ways & kind.ways
        if alike and max(_jaccard(bag, other) for other in kind.bags) >= SAME_TASK:
            return kind
    clusters.append(Kind(scenario.domain, [], cluster=True))
    return clusters[-1]


def _jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / len(a | b) if a | b else 1.0


def best_way(
    attempts: Sequence[Attempt], prior: Mapping[tuple[str, ...], tuple[float, float]]
) -> Finding | None:
    """Return the sequence of tools that winners used and that beat the others, or None.

    `prior` holds (attempts, sum of rewards) that earlier epochs saw of a sequence.
    """
    ways: dict[tuple[str, ...], list[Attempt]] = {}
    for attempt in attempts:
        ways.setdefault(attempt.tools, []).append(attempt)
    overall = _mean_reward(attempts)

    def quality(way: tuple[str, ...]) -> float:
        seen = ways.get(way, [])
        count, total = prior.get(way, (0.0, 0.0))
        return (sum(a.reward for a in seen) + total + overall) / (len(seen) + count + 1)

    able = [w for w in ways | dict(prior) if w and (w in prior or any(a.sign > 0 for a in ways[w]))]
    if not able:
        return None
    best = max(able, key=lambda w: (quality(w), -len(w), w))
    used = ways.get(best, [])
    if best not in prior:
        best = min(
            (w for w in able if w in ways and _as_good(ways[w], used)),
            key=lambda w: (sum(a.tokens for a in ways[w]) / len(ways[w]), len(w), w),
        )
        used = ways[best]
    others = [a for a in attempts if a.tools != best]
    if not used or (best not in prior and not (others and _mean_reward(used) > _mean_reward(others))):
        return None
    return Finding(advice=use(best), attempts=tuple(used))


def use(way: Sequence[str]) -> str:
    """Return the advice to use some tools in order."""
    return "use " + ", then ".join(way)


def worst_tool(attempts: Sequence[Attempt], spared: Iterable[str]) -> Finding | None:
    """Return the tool that cost most: tried by two losers or more and by hardly a winner, not in `spared`."""
    found: list[tuple[int, float, str, list[Attempt]]] = []
    for tool in sorted({t for a in attempts if a.sign < 0 for t in a.tools_tried} - set(spared)):
        users = [a for a in attempts if tool in a.tools_tried]
        lost = sum(a.sign < 0 for a in users)
        if lost >= 2 and lost >= 0.75 * len(users):
            found.append((lost, lost / len(users), tool, users))
    if not found:
        return None
    _, _, tool, users = min(found, key=lambda f: (-f[0], -f[1], f[2]))
    return Finding(advice=f"avoid {tool}", attempts=tuple(users))


def best_arguments(attempts: Sequence[Attempt]) -> Finding | None:
    """Return the arguments that winners gave to a tool and losers did not, or None."""

    def habits(attempt: Attempt) -> set[str]:
        return {
            f"call {frame.name} with {key}"
            for frame in tool_frames(attempt.rollout)
            if isinstance(frame.input, Mapping)
            for key in frame.input
            if isinstance(key, str) and _TOOL_NAME.fullmatch(key)
        }

    return _habit(attempts, habits, sign=1)


def best_form(attempts: Sequence[Attempt]) -> Finding | None:
    """Return the form of answer that winners share and losers lack, or None."""
    return _habit(attempts, lambda a: {f"answer with {form}" for form in _forms(a.rollout.answer)}, sign=1)


def worst_form(attempts: Sequence[Attempt]) -> Finding | None:
    """Return the form of answer that losers share and winners lack, or None."""
    return _habit(
        attempts, lambda a: {f"avoid answering with {form}" for form in _forms(a.rollout.answer)}, sign=-1
    )


def _habit(attempts: Sequence[Attempt], habits: Callable[[Attempt], set[str]], sign: int) -> Finding | None:
    """Return the habit that most tells attempts of one sign from those of the other."""
    shown = [(attempt, habits(attempt)) for attempt in attempts]
    ours = [habit for attempt, habit in shown if attempt.sign == sign]
    theirs = [habit for attempt, habit in shown if attempt.sign == -sign]
    if not ours or not theirs:
        return None

    def contrast(habit: str) -> float:
        return sum(habit in h for h in ours) / len(ours) - sum(habit in h for h in theirs) / len(theirs)

    every = sorted({habit for shown_habits in ours for habit in shown_habits})
    best = max(every, key=lambda habit: (contrast(habit), -_breadth(habit)), default=None)
    if best is None or contrast(best) < MIN_CONTRAST:
        return None
    return Finding(advice=best, attempts=tuple(a for a, h in shown if best in h))


_FORMS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("a bare number", lambda text: _NUMBER.fullmatch(text) is not None),
    ("JSON alone", lambda text: text[:1] in ("{", "[") and _is_json(text)),
    ("a code fence", lambda text: "```" in text),
    ("one word", lambda text: len(text.split(None, 1)) == 1),
    ("at most five words", lambda text: 0 < len(text.split(None, 5)) <= 5),
    ("a single line", lambda text: bool(text) and "\n" not in text),
    ("several lines", lambda text: "\n" in text),
    ("more than fifty words", lambda text: len(text.split(None, 50)) > 50),
)
"""Forms of answers, the narrow ones first."""


def _forms(answer: str) -> list[str]:
    text = answer.strip()
    return [name for name, test in _FORMS if test(text)]


def _breadth(habit: str) -> int:
    return next((i for i, (name, _) in enumerate(_FORMS) if habit.endswith(name)), 0)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _as_good(attempts: Sequence[Attempt], best: Sequence[Attempt]) -> bool:
    enough = len(attempts) >= max(2, len(best) / 3) or attempts is best
    return enough and _mean_reward(attempts) >= _mean_reward(best) - AS_GOOD


def _mean_reward(attempts: Sequence[Attempt]) -> float:
    return sum(a.reward for a in attempts) / len(attempts) if attempts else 0.0

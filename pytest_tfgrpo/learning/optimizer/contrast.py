"""Contrasts: the attempts of an epoch by kind of task, and what better ones did differently (decision 12)."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Frame, Group, Rollout, Score
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.texts.words import content
from pytest_tfgrpo.core.wire.strict import is_json
from pytest_tfgrpo.learning.optimizer.wording import wording

SAME_TASK = 0.25
"""Shared content words (Jaccard) from which tasks without family, with equal winners, are of one kind."""
AS_GOOD = 0.05
"""Difference of mean rewards under which the cheaper way of two is preferred."""
MIN_WORTH = 0.5
"""Mean reward under which what winners did is no example, even if all others did worse."""
MIN_CONTRAST = 0.5
"""Difference in share between winners and losers from which a habit distinguishes them."""

_TOOL_NAME = re.compile(r"[A-Za-z_][\w.-]{0,63}", re.ASCII)
_NUMBER = re.compile(r"[-+]?\d[\d,]{0,30}(?:\.\d{1,30})?%?")


class AttemptCall(NamedTuple):
    """What a lesson may rest on of one tool call."""

    name: str
    tokens: int
    latency_ms: float
    cost_usd: float | None
    keys: frozenset[str]
    """Names of its arguments that a lesson can carry."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """What a lesson may rest on of one scored rollout of a group with spread: an epoch has very many."""

    group_id: str
    index: int
    """Place in its group."""
    reward: float
    gt_score: float
    relative_rank: float
    sign: int
    """1 for a winner, -1 for a loser, 0 in between."""
    tools: tuple[str, ...]
    """Tools whose calls worked, in order, repeats in a row counted once; empty when it used none."""
    tools_tried: frozenset[str]
    calls: tuple[AttemptCall, ...]
    """Calls of tools whose names a lesson can carry."""
    forms: tuple[str, ...]
    """Forms that its answer has."""

    @property
    def tokens(self) -> int:
        """Tokens of its tool calls."""
        return sum(call.tokens for call in self.calls)


@dataclass(slots=True)
class TaskKind:
    """A kind of task: the scenarios of a family, or similar tasks that the same tools solved."""

    domain: str
    prompts: list[str]
    """Wordings of its train tasks, without quoted data."""
    attempts: list[Attempt] = field(default_factory=list)
    cluster: bool = False
    """True when it was found by similarity, not named as a family."""
    bags: set[frozenset[str]] = field(default_factory=set)
    """Content stems of the prompts of a cluster."""
    ways: set[tuple[str, ...]] = field(default_factory=set)
    """Tools of the winners of a cluster."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Contrast:
    """A difference between winners and losers of a kind."""

    advice: str
    """In the imperative, without full stop."""
    attempts: tuple[Attempt, ...]
    """All attempts that did this, whatever their result."""


def attempts_of(group: Group, known: dict[Hashable, Any] | None = None) -> list[Attempt]:
    """Return the scored rollouts of `group`, errors left out, as winners and losers.

    `known` remembers values, so that equal ones are held once.
    """
    known = {} if known is None else known
    pairs = zip(group.rollouts, group.scores, strict=True)
    scored = [(r, s, s.gt_score if s.reward is None else s.reward) for r, s in pairs]
    rewards = [reward for _, _, reward in scored if reward is not None]
    mean = sum(rewards) / len(rewards) if rewards else 0.0
    return [
        _attempt(group.group_id, rollout, score, reward, mean, known)
        for rollout, score, reward in scored
        if reward is not None
    ]


def _attempt(
    group_id: str, rollout: Rollout, score: Score, reward: float, mean: float, known: dict[Hashable, Any]
) -> Attempt:
    """Return a rollout with a `reward` as winner or loser, held against the `mean` of its group."""
    gt_score = reward if score.gt_score is None else score.gt_score
    rank = 0.5 if score.relative_rank is None else score.relative_rank
    frames = [f for f in rollout.frames if f.kind == "tool" and _TOOL_NAME.fullmatch(f.name)]
    tools = tuple(name for name, _ in groupby(f.name for f in frames if f.error is None))
    tried, forms = frozenset(f.name for f in frames), _forms_of(rollout.answer)
    return Attempt(
        group_id=group_id,
        index=rollout.index,
        reward=known.setdefault(reward, reward),
        gt_score=known.setdefault(gt_score, gt_score),
        relative_rank=known.setdefault(rank, rank),
        sign=(reward > mean + 1e-9) - (reward < mean - 1e-9),
        tools=known.setdefault(tools, tools),
        tools_tried=known.setdefault(tried, tried),
        calls=tuple(_call(frame, known) for frame in frames),
        forms=known.setdefault(forms, forms),
    )


def _call(frame: Frame, known: dict[Hashable, Any]) -> AttemptCall:
    given = frame.input if isinstance(frame.input, Mapping) else ()
    keys = frozenset(key for key in given if isinstance(key, str) and _TOOL_NAME.fullmatch(key))
    name = known.setdefault(frame.name, frame.name)
    return AttemptCall(name, frame.tokens, frame.latency_ms, frame.cost_usd, known.setdefault(keys, keys))


def kinds_of(groups: Iterable[Group], scenarios: Mapping[str, Scenario]) -> list[TaskKind]:
    """Return the kinds of the train tasks: all families, and clusters of the groups without a family."""
    families: dict[tuple[str, str], TaskKind] = {}
    for scenario in scenarios.values():
        if scenario.family:
            key = (scenario.domain, scenario.family)
            kind = families.setdefault(key, TaskKind(scenario.domain, []))
            kind.prompts.append(wording(scenario.wording))
    clusters: list[TaskKind] = []
    known: dict[Hashable, Any] = {}
    for group in groups:
        scenario = scenarios[group.scenario_id]
        attempts = attempts_of(group, known)
        if scenario.family:
            families[scenario.domain, scenario.family].attempts += attempts
        else:
            ways = {a.tools for a in attempts if a.sign > 0}
            prompt = wording(scenario.wording)
            bag = content(prompt)
            kind = _cluster(clusters, scenario, bag, ways)
            kind.prompts.append(prompt)
            kind.bags.add(bag)
            kind.ways |= ways
            kind.attempts += attempts
    return [*families.values(), *clusters]


def _cluster(
    clusters: list[TaskKind], scenario: Scenario, bag: frozenset[str], ways: set[tuple[str, ...]]
) -> TaskKind:
    """Return the cluster of a task without family; a new one is added to `clusters`."""
    for kind in clusters:
        alike = kind.domain == scenario.domain and ways & kind.ways
        if alike and (bag in kind.bags or any(_jaccard(bag, b) >= SAME_TASK for b in kind.bags)):
            return kind
    clusters.append(TaskKind(scenario.domain, [], cluster=True))
    return clusters[-1]


def _jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / len(a | b) if a | b else 1.0


Way: TypeAlias = tuple[str, ...]
"""Tools in order of use."""
WayRecord: TypeAlias = tuple[float, float]
"""(groups, mean over them of the mean reward in each): many attempts at one task count as one."""


def record_of(way: Way, attempts: Iterable[Attempt], prior: WayRecord = (0.0, 0.0)) -> WayRecord:
    """Return what `prior` and those of `attempts` that used the tools of `way` amount to."""
    by_group: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        if attempt.tools == way:
            by_group.setdefault(attempt.group_id, []).append(attempt)
    count, mean = prior
    groups = count + len(by_group)
    total = count * mean + sum(map(_mean_reward, by_group.values()))
    return groups, total / groups if groups else 0.0


def best_way(attempts: Sequence[Attempt], prior: Mapping[Way, WayRecord]) -> Contrast | None:
    """Return the sequence of tools that winners used and that beat the others, or None.

    `prior` is what earlier epochs saw of sequences that active lessons name. A sequence that earned less
    than half is no example; of equally good ones the cheaper in tokens is taken.
    """
    ways: dict[Way, list[Attempt]] = {}
    for attempt in attempts:
        ways.setdefault(attempt.tools, []).append(attempt)
    won = [way for way, used in ways.items() if way and any(a.sign > 0 for a in used)]
    records = {w: record_of(w, ways.get(w, ()), prior.get(w, (0.0, 0.0))) for w in (*won, *prior)}
    worthy = {way: record for way, record in records.items() if record[1] >= MIN_WORTH}
    if not worthy:
        return None
    overall = _mean_reward(attempts)

    def quality(way: Way) -> float:
        groups, mean = worthy[way]
        return (groups * mean + overall) / (
            groups + 1
        )  # one lucky group counts for less than several good ones

    best = max(worthy, key=lambda w: (quality(w), -len(w), w))
    groups, mean = worthy[best]
    as_good = [w for w, (g, m) in worthy.items() if w in ways and g >= groups and m >= mean - AS_GOOD]
    best = min(as_good, key=lambda w: (_tokens_per_use(ways[w]), len(w), w), default=best)
    used = ways.get(best, [])
    others = [a for a in attempts if a.tools != best]
    if not used or (best not in prior and not (others and _mean_reward(used) > _mean_reward(others))):
        return None
    return Contrast(advice=use(best), attempts=tuple(used))


def _tokens_per_use(attempts: Sequence[Attempt]) -> float:
    return sum(a.tokens for a in attempts) / len(attempts)


def use(way: Way) -> str:
    """Return the advice to use some tools in order."""
    return "use " + ", then ".join(way)


def worst_tool(attempts: Sequence[Attempt], spared: Iterable[str]) -> Contrast | None:
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
    return Contrast(advice=f"avoid {tool}", attempts=tuple(users))


def best_arguments(attempts: Sequence[Attempt]) -> Contrast | None:
    """Return an argument that winners gave to a tool and losers who called it did not, or None."""

    def habits(attempt: Attempt, tool: str) -> set[str]:
        return {f"call {tool} with {key}" for call in attempt.calls if call.name == tool for key in call.keys}

    for tool in sorted({tool for a in attempts for tool in a.tools_tried}):
        users = [a for a in attempts if tool in a.tools_tried]
        if found := _habit([(a, habits(a, tool)) for a in users], sign=1):
            return found
    return None


def best_form(attempts: Sequence[Attempt]) -> Contrast | None:
    """Return the form of answer that winners share and losers lack, or None."""
    return _habit([(a, _phrased("answer with", a)) for a in attempts], sign=1)


def worst_form(attempts: Sequence[Attempt]) -> Contrast | None:
    """Return the form of answer that losers share and winners lack, or None."""
    return _habit([(a, _phrased("avoid answering with", a)) for a in attempts], sign=-1)


def _habit(shown: Sequence[tuple[Attempt, set[str]]], sign: int) -> Contrast | None:
    """Return the habit that best distinguishes attempts of one sign from the other, if any."""
    ours = [habits for attempt, habits in shown if attempt.sign == sign]
    theirs = [habits for attempt, habits in shown if attempt.sign == -sign]
    if not ours or not theirs:
        return None

    def contrast(habit: str) -> float:
        return sum(habit in h for h in ours) / len(ours) - sum(habit in h for h in theirs) / len(theirs)

    every = sorted({habit for habits in ours for habit in habits})
    best = max(every, key=lambda habit: (contrast(habit), -_breadth(habit)), default=None)
    if best is None or contrast(best) < MIN_CONTRAST:
        return None
    found = tuple(attempt for attempt, habits in shown if best in habits)
    return None if sign > 0 and _mean_reward(found) < MIN_WORTH else Contrast(advice=best, attempts=found)


_FORMS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("a bare number", lambda text: _NUMBER.fullmatch(text) is not None),
    ("JSON alone", lambda text: text[:1] in ("{", "[") and is_json(text)),
    ("a code fence", lambda text: "```" in text),
    ("one word", lambda text: len(text.split(None, 1)) == 1),
    ("at most five words", lambda text: 0 < len(text.split(None, 5)) <= 5),
    ("a single line", lambda text: bool(text) and "\n" not in text),
    ("several lines", lambda text: "\n" in text),
    ("more than fifty words", lambda text: len(text.split(None, 50)) > 50),
)
"""Forms of answers, the narrow ones first."""


def _forms_of(answer: str) -> tuple[str, ...]:
    text = answer.strip()
    return tuple(name for name, test in _FORMS if test(text))


def _phrased(verb: str, attempt: Attempt) -> set[str]:
    return {f"{verb} {name}" for name in attempt.forms}


def _breadth(habit: str) -> int:
    return next((i for i, (name, _) in enumerate(_FORMS) if habit.endswith(name)), 0)


def _mean_reward(attempts: Sequence[Attempt]) -> float:
    return sum(a.reward for a in attempts) / len(attempts) if attempts else 0.0

"""Assumptions: what calls may use if nothing is recorded, derived from the prompts a run would send."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from pytest_tfgrpo.core.conversations import SAID_MAX, SHOWN_MAX
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings.agents import JUDGE_VOTES, MAX_STEPS, MAX_TOKENS
from pytest_tfgrpo.core.settings.learning import LIBRARY_CAP
from pytest_tfgrpo.core.settings.runs import ANSWER_MAX_BYTES, SEED
from pytest_tfgrpo.core.wire.stamp import seed_of
from pytest_tfgrpo.estimate.ranges import Figures, Range, total
from pytest_tfgrpo.learning.optimizer.llm.critique import MAX_ATTEMPTS, MAX_CHANGES, TASK
from pytest_tfgrpo.learning.optimizer.llm.transcript import READ, SHOWN
from pytest_tfgrpo.learning.optimizer.none import NoOptimizer
from pytest_tfgrpo.learning.optimizer.registry import OPTIMIZERS
from pytest_tfgrpo.learning.prompts import PromptBuilder
from pytest_tfgrpo.llm.prices import Price
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.scoring.judge.prompt import TEXT_MAX
from pytest_tfgrpo.suite.packs import pack_for

SAMPLE = 200
"""Scenarios whose prompts are rendered."""
BYTES_PER_TOKEN = Range(2.5, 6.0)
ANSWER_TOKENS = 16
"""Completion tokens of a short answer."""
LESSON_BYTES = 32 * 8
"""Of one lesson in a prompt."""
TOOL_TOKENS = 300
"""Description of one tool, at most."""
STEP_BYTES = 4_000
"""What a turn with tool calls adds to the prompts after it, at most."""
INSTRUCTION_BYTES = 6_000
"""Most further characters in the prompt of a teacher or judge."""
MESSAGE_TOKENS = 40
"""What a server adds to a prompt, at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """What is known about a language model before the first call."""

    price: Price | None
    max_tokens: int

    def calls(self, number: Range, prompt_bytes: Range, extra_tokens: float = MESSAGE_TOKENS) -> Figures:
        """Return what a number of calls may use whose prompts have so many bytes each."""
        prompt = Range(
            prompt_bytes.low / BYTES_PER_TOKEN.high,
            prompt_bytes.high / BYTES_PER_TOKEN.low + extra_tokens,
        )
        answer = Range(min(ANSWER_TOKENS, self.max_tokens), self.max_tokens)
        ends = [(number.low, prompt.low, answer.low), (number.high, prompt.high, answer.high)]
        price = self.price
        usd = None if price is None else Range(*(n * price.most(ceil(p), ceil(c)) for n, p, c in ends))
        return Figures(calls=number, tokens=Range(*(n * (p + c) for n, p, c in ends)), usd=usd)


@dataclass(frozen=True, slots=True)
class PromptSizes:
    """Bytes of rendered prompts, mean over a sample."""

    scenarios: int
    """How many were rendered."""
    by_scenario: dict[str, int]
    """Bytes of the prompt of each, without lessons learned in the run."""

    def mean(self, ids: Sequence[str]) -> float:
        """Return the mean over `ids`, over the whole sample where none of them is in it."""
        known = [self.by_scenario[id_] for id_ in ids if id_ in self.by_scenario] or [
            *self.by_scenario.values()
        ]
        return sum(known) / len(known)


def render(job: Job) -> PromptSizes:
    """Render the prompts of up to `SAMPLE` scenarios of a job, drawn by its seed."""
    used = {id_ for phase in job.phases for id_ in (*phase.scenarios, *phase.dev)}
    ranked = sorted(
        (s for s in job.scenarios if s.id in used),
        key=lambda s: seed_of(SEED.of(job.settings), "estimate", s.stamp, s.id),
    )
    prompts = PromptBuilder(job, job.library)
    sizes = {s.id: len(str(prompts.ask(s.id).prompt).encode("utf-8", "replace")) for s in ranked[:SAMPLE]}
    return PromptSizes(len(sizes), sizes)


def asked(job: Job, phase: Phase) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids of the scenarios that a phase asks for certain, and of those that it asks at most.

    A concurrent control asks only where its prompt is not that of the final sweep, whose answers it shares
    elsewhere. Training may change the prompts that have room for lessons, in domains with train scenarios
    or lessons; all others are known.
    """
    if not phase.concurrent:
        return phase.scenarios, phase.scenarios
    by_id, taught = {s.id: s for s in job.scenarios}, _taught(job)
    before = PromptBuilder(job, job.reference.library if job.reference is not None else job.library, phase)
    after = PromptBuilder(job, job.library)
    open_ids = {
        id_
        for id_ in phase.scenarios
        if by_id[id_].domain in taught and pack_for(job.packs, by_id[id_].domain).experience_slots
    }
    known = [id_ for id_ in phase.scenarios if id_ not in open_ids]
    differ = {id_ for id_ in known if before.ask(id_).prompt_stamp != after.ask(id_).prompt_stamp}
    return (
        tuple(id_ for id_ in phase.scenarios if id_ in differ),
        tuple(id_ for id_ in phase.scenarios if id_ in differ or id_ in open_ids),
    )


def _taught(job: Job) -> set[str]:
    """Return the domains whose lessons may change while a run lasts."""
    by_id = {s.id: s for s in job.scenarios}
    trained = {by_id[id_].domain for phase in job.phases if phase.trains for id_ in phase.scenarios}
    if not trained:
        return set()
    if job.optimizer.name not in OPTIMIZERS:  # a plugin's may write lessons for any domain
        return {s.domain for s in job.scenarios}
    return {e.domain for e in job.library.experiences} | (
        set() if job.optimizer.name == NoOptimizer.name else trained
    )


def rollouts(job: Job, phase: Phase, model: Model, prompts: PromptSizes) -> Figures:
    """Return what the rollouts of a phase may use: one call a turn or, with tools, up to ``max_steps``."""
    by_id = {s.id: s for s in job.scenarios}
    turns = [_turns(job, by_id[id_]) for id_ in phase.scenarios]
    most = max(number.high for number in turns)
    steps = max(_steps(job, by_id[id_]) for id_ in phase.scenarios)
    size = prompts.mean(phase.scenarios)
    slots = max((pack.experience_slots for pack in job.packs.values()), default=0)
    lessons = LESSON_BYTES * slots * (phase.mode != "baseline")
    between = STEP_BYTES * most * (steps - 1) / 2
    said = max(_said_bytes(job, by_id[id_]) for id_ in phase.scenarios)
    tools = TOOL_TOKENS * max(len(by_id[id_].tools or ()) for id_ in phase.scenarios)
    tools = tools or 20 * TOOL_TOKENS * (steps > 1)
    grown = model.max_tokens * (most * steps - 1) / 2  # each call has the answers before it in its prompt
    return model.calls(
        Range(
            phase.rollouts * sum(number.low for number in turns),
            phase.rollouts * sum(number.high for number in turns) * steps,
        ),
        Range(size, size + lessons + between + said),
        MESSAGE_TOKENS * most * steps + tools + grown,
    )


def _turns(job: Job, scenario: Scenario) -> Range:
    """Return the messages of the user in a rollout: a model that plays it may be done after the first."""
    if scenario.user is not None and job.user is not None:
        return Range(1, scenario.user.max_turns)
    number = max(1, len(scenario.turns))
    return Range(number, number)


def _said_bytes(job: Job, scenario: Scenario) -> float:
    """Return what messages of the user after the first add to a prompt at most, mean over the turns."""
    if scenario.user is None or job.user is None:
        return sum(len(turn.encode("utf-8", "replace")) for turn in scenario.turns[1:]) / 2
    most = min(SAID_MAX, MAX_TOKENS.of(job.settings) * BYTES_PER_TOKEN.high)
    return most * (scenario.user.max_turns - 1) / 2


def playing(job: Job, phase: Phase, model: Model, prompts: PromptSizes) -> Figures:
    """Return what playing users may use: from one call in each rollout to two for each reply."""
    ids = set(phase.scenarios)
    return total(_played(job, s, phase.rollouts, model, prompts) for s in job.scenarios if s.id in ids)


def _played(job: Job, scenario: Scenario, rollouts: int, model: Model, prompts: PromptSizes) -> Figures:
    """Return the same for one scenario: its user replies to each answer, but not to that of the last turn."""
    replies = scenario.user.max_turns - 1 if scenario.user is not None else 0
    if not replies:
        return Figures()
    size = prompts.mean([scenario.id])
    answers = min(_story_bytes(job), SHOWN_MAX) * (replies + 1) / 2  # so many has a prompt, as a mean
    said = min(SAID_MAX, model.max_tokens * BYTES_PER_TOKEN.high) * (replies - 1) / 2
    return model.calls(
        Range(rollouts, 2 * rollouts * replies),
        Range(0, size + INSTRUCTION_BYTES + answers + said),
        MESSAGE_TOKENS * (2 * replies + 1),
    )


def _steps(job: Job, scenario: Scenario) -> int:
    """Return the model calls of one rollout at most."""
    has_files = bool(scenario.attachments) or scenario.workspace is not None
    can_use_tools = bool(job.actor.identity.get("tools")) or has_files
    return MAX_STEPS.of(job.settings) if can_use_tools and scenario.tools != () else 1


def learning(job: Job, phase: Phase, model: Model) -> Figures:
    """Return what learning from a phase may use: from no group with spread to all of them."""
    groups = len(phase.scenarios)
    attempts = min(phase.rollouts, MAX_ATTEMPTS)
    lessons = len(job.library.experiences) + phase.epoch * groups * MAX_CHANGES
    library = LESSON_BYTES * min(lessons, LIBRARY_CAP.of(job.settings))
    story = _story_bytes(job)
    told = max(min(story, READ), attempts * min(story, SHOWN))
    domains = len({s.domain for s in job.scenarios if s.id in set(phase.scenarios)})
    most = groups * (attempts + 2) + 2 * domains  # a summary of each attempt, a critique, and repairs
    return model.calls(Range(0, most), Range(500, TASK + INSTRUCTION_BYTES + library + told))


def judging(job: Job, phase: Phase, model: Model, prompts: PromptSizes) -> Figures:
    """Return what judging a phase may use: its votes on each answer, each repaired once or not."""
    ids = [s.id for s in job.scenarios if s.rubric and s.id in set(phase.scenarios)]
    votes = len(ids) * phase.rollouts * JUDGE_VOTES.of(job.settings)
    size = prompts.mean(ids)
    most = min(size, TEXT_MAX) + INSTRUCTION_BYTES + min(_story_bytes(job), 2 * TEXT_MAX)
    return model.calls(Range(votes, 2 * votes), Range(size, max(size, most)))


def _story_bytes(job: Job) -> float:
    """Return the bytes of an attempt at most: all that a model may write, or what an actor may answer."""
    answer = ANSWER_MAX_BYTES.of(job.settings)
    if job.actor.name not in job.models or job.actor.identity.get("tools"):
        return answer
    return min(float(answer), MAX_TOKENS.of(job.settings) * BYTES_PER_TOKEN.high)

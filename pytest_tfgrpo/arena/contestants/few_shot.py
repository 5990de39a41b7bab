"""The contestant `few-shot`: solved train tasks as examples, in the lesson slots of prompts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pytest_tfgrpo.arena.contestants.draws import drawn, families_first
from pytest_tfgrpo.arena.protocol import Ring, ScoredRollout, Trained
from pytest_tfgrpo.core.lessons import Experience, Reward, Support
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.wire.stamp import canonical, identify
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.learning.library.experience_lines import MAX_CHARS, MAX_WORDS
from pytest_tfgrpo.learning.library.library import of
from pytest_tfgrpo.learning.optimizer.contrast import MIN_WORTH
from pytest_tfgrpo.suite.packs import pack_for

ROUNDS = 3
"""Attempts at a train task, until one solves it."""
ANSWER_WORDS = 16
"""Of an answer that a slot holds whole; a part of one would be a wrong example."""
CUT = "..."


class Solved(NamedTuple):
    """A train task and the attempt that solved it."""

    scenario: Scenario
    attempt: ScoredRollout
    gt_score: float


class FewShot:
    """Needs no teacher, and learns nothing but what worked."""

    name = "few-shot"
    identity: Mapping[str, Json] = {"rounds": ROUNDS}
    needs_teacher = False

    async def train(self, ring: Ring) -> Trained:
        """Run the train tasks until each is solved, and return the library of the start with examples."""
        solved = await _solved(ring)
        ranked = sorted(solved, key=lambda each: -each.gt_score)
        by_id = {each.scenario.id: each for each in ranked}
        order = [by_id[scenario.id] for scenario in families_first([each.scenario for each in ranked])]
        unfit: Counter[str] = Counter()
        examples = list(_examples(ring, order, unfit))
        library = of((*ring.library.experiences, *examples), ring.library.lineage) if examples else None
        note = f"{len(solved)} of {len(ring.train)} train tasks solved, {len(examples)} of them are examples"
        if unfit:
            told = ", ".join(f"{code} {count}" for code, count in sorted(unfit.items()))
            note += f"; {unfit.total()} fit no slot ({told})"
        return Trained(library=library, note=note)


async def _solved(ring: Ring) -> list[Solved]:
    """Return the train tasks that were solved, in the order of the draw."""
    order = drawn(ring.train, ring.seed, "few-shot")
    found: dict[str, Solved] = {}
    for _ in range(ROUNDS):
        waiting = [scenario for scenario in order if scenario.id not in found][: ring.left]
        if not waiting:
            break
        for scenario, attempt in zip(waiting, await ring.ask(waiting), strict=True):
            gt_score = attempt.score.gt_score
            least = MIN_WORTH if scenario.min_score is None else scenario.min_score
            if gt_score is not None and gt_score > 0 and gt_score >= least:
                found[scenario.id] = Solved(scenario, attempt, gt_score)
    return [found[scenario.id] for scenario in order if scenario.id in found]


def _examples(ring: Ring, solved: Sequence[Solved], unfit: Counter[str]) -> Iterator[Experience]:
    """Yield as many lessons of each domain as its prompts have slots; those unfit are counted by reason."""
    used: Counter[str] = Counter()
    for each in solved:
        domain = each.scenario.domain
        if used[domain] >= pack_for(ring.packs, domain).experience_slots:
            continue
        text = example_text(each.scenario, each.attempt.rollout.answer)
        if text is None:
            unfit["too_long"] += 1
            continue
        lesson = _lesson(ring, each, text)
        refused = ring.screen.refuse(lesson)
        if refused and refused[0] != "leak":  # the answer of a train task is what an example is made of
            unfit[refused[0]] += 1
            continue
        used[domain] += 1
        yield lesson


def example_text(scenario: Scenario, answer: str) -> str | None:
    """Return a solved task in the room of a lesson, the middle of a long task left out; None: none fits."""
    data = "" if scenario.input is None else canonical(scenario.input).decode()
    task, given = f"{scenario.prompt} {data}".split(), answer.split()
    if not 1 <= len(given) <= ANSWER_WORDS:
        return None
    room = MAX_WORDS - len(given) - 2
    while room >= 4:
        shown = task if len(task) <= room else [*task[: room // 2], CUT, *task[len(task) - (room - 1) // 2 :]]
        text = " ".join(["Task:", *shown, "Answer:", *given])
        if len(text) <= MAX_CHARS:
            return text
        room = min(room, len(task)) - 1
    return None


def _lesson(ring: Ring, solved: Solved, text: str) -> Experience:
    pack, rollout = pack_for(ring.packs, solved.scenario.domain), solved.attempt.rollout
    return Experience(
        id=identify("few-shot", ring.seed, solved.scenario.id, text),
        run_id=rollout.run_id,
        task_id="",
        domain=solved.scenario.domain,
        prompt_pack_id=pack.id,
        epoch=rollout.epoch,
        group_id=rollout.group_id,
        summary32=text,
        polarity="do",
        reward=Reward(gt_score=solved.gt_score, relative_rank=1.0),
        support=Support(groups=1, rollouts=1),
        tool_stats=(),
        stamp_signature=pack.stamp,
        actor=ring.actor,
    )

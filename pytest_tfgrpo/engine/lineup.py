"""The lineup: the rollouts of a phase, or of the final sweep and those beside it, in order of start.

Rollouts of one scenario and place start together on all sides, such as a control, a placebo sweep and the
final one: what drifts while a run lasts, as a provider does, meets all sides alike. Where the library leaves
a prompt as it is, the final sweep's answers serve the others too: prompts are equal, so they differ by 0.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Group, Mode, Phase, Rollout
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings.agents import PART_THOUGHTS
from pytest_tfgrpo.core.settings.runs import ANSWER_MAX_BYTES, SEED, TIMEOUT_S
from pytest_tfgrpo.engine.attempts.attempt import Slot
from pytest_tfgrpo.engine.context import RunContext
from pytest_tfgrpo.engine.conversations.conversation import ScriptedUser
from pytest_tfgrpo.engine.conversations.simulated_user import PlayedUser
from pytest_tfgrpo.engine.observers import SharedPrompt
from pytest_tfgrpo.learning.prompts import Ask, RenderedPrompt
from pytest_tfgrpo.metrics.comparison import tally
from pytest_tfgrpo.protocols import ActorCall, SweepWatch, User
from pytest_tfgrpo.runs.schedule import group_id, rollout_id
from pytest_tfgrpo.runs.seeds import place_among, rollout_seed
from pytest_tfgrpo.suite.prompt import task_text


@dataclass(frozen=True, kw_only=True, slots=True)
class Arm:
    """One side of what a cohort runs: a phase, and the prompts of its rollouts by scenario id and place."""

    phase: Phase
    ask: Ask


class Lineup:
    """Yields the slots of one arm, or of several side by side; the last arm is the one that is watched."""

    def __init__(
        self,
        context: RunContext,
        arms: Sequence[Arm],
        watch: SweepWatch | None,
        first: Mapping[str, int],
        done: Collection[str] = (),
    ) -> None:
        """With `watch` scenarios come in its order, and none that may be left out once it is settled.

        `first` has the rollouts of each group, by id, that there are already. Groups whose ids are in `done`
        are scored.
        """
        self._context = context
        self._job = job = context.job
        self._arms = arms
        self._watch = watch
        self._first = first
        self._done = done
        self._asked: set[str] = set()
        """Domains of which a question was made."""
        last = arms[-1].phase
        self._settled_on_file = last.epoch in job.resumed.settled and last.mode == "eval"
        self._may_settle = watch is not None or self._settled_on_file
        """Whether scenarios may be left out since the gate is decided."""
        begun = job.resumed.begun if self._may_settle else ()
        self._begun = {
            id_
            for arm in arms
            for id_ in (arm.phase.scenarios if begun else ())
            if group_id(job.run_id, arm.phase, id_) in begun
        }
        self._unready = self._all_slots()
        self._ready: deque[Slot] = deque()
        self.settled: list[str] = []
        """Ids of scenarios that were skipped because the gate was already decided."""
        self.shared: dict[int, dict[str, int]] = {arm.phase.epoch: {} for arm in arms[:-1]}
        """Of each arm by epoch, by scenario: the epoch of a later one that has its prompt and runs for it."""
        self.torn: dict[str, Rollout] = {}
        """Rollouts on file, by id, that are made again: one side of their pair is not, or is of no use."""

    def __iter__(self) -> Iterator[Slot]:
        """Yield the slots in order, from those made ready while the calls before them were waited for."""
        while self._ready or self.make_ready():
            slot = self._ready.popleft()
            if not self._is_left_out(slot.question.scenario):
                yield slot

    def make_ready(self) -> bool:
        """Make one more slot ready, if there is one."""
        slot = next(self._unready, None)
        if slot is not None:
            self._ready.append(slot)
        return slot is not None

    def _is_left_out(self, scenario: Scenario) -> bool:
        """Return whether the gate is decided without a scenario; one that has started is finished."""
        if not self._may_settle or scenario.id in self._begun or scenario.min_score is not None:
            return False
        if scenario.id in self.settled[-1:]:
            return True
        if self._is_settled():
            self.settled.append(scenario.id)
            return True
        self._begun.add(scenario.id)
        return False

    def feed(self, groups: Sequence[Group]) -> None:
        """Let the gate know groups that are scored, which may decide it."""
        if self._watch is None:
            return
        last = self._arms[-1].phase.epoch
        stamps = {group.scenario_id: self._context.scenarios[group.scenario_id].stamp for group in groups}
        after = [group for group in groups if group.epoch == last]
        before = [g for g in groups if (g.epoch != last or g.shared) and g.mode != "placebo"]
        if self._watch.feed(tally(after, stamps), tally(before, stamps)):
            self._context.writer.settled(last)

    def _is_settled(self) -> bool:
        return self._settled_on_file or (self._watch is not None and self._watch.settled)

    def _all_slots(self) -> Iterator[Slot]:
        last = self._arms[-1].phase
        for scenario_id in self._watch.order if self._watch is not None else last.scenarios:
            if self._is_done(scenario_id):
                continue
            asked = [(arm.phase, arm.ask(scenario_id, 0)) for arm in self._arms]
            scenario = asked[-1][1].scenario
            for phase, server in alike(asked):
                self.shared[phase.epoch][scenario_id] = server.epoch
                if scenario.checker is not None:
                    self._context.observe(SharedPrompt(scenario_id=scenario_id, epoch=phase.epoch))
            asked = [one for one in asked if scenario_id not in self.shared.get(one[0].epoch, ())]
            for index in range(max(phase.rollouts_of(scenario_id) for phase, _ in asked)):
                if index and last.mode == "dev":  # coins fall anew for each of its rollouts
                    asked = [(last, self._arms[-1].ask(scenario_id, index))]
                together = self._in_order(asked, index)
                for phase, question in together:
                    others = [other for other, _ in together if other is not phase]
                    yield self._slot(phase, question, index, others)

    def _is_done(self, scenario_id: str) -> bool:
        """Return whether all groups of a scenario are scored.

        One question of each domain is made all the same: it counts the lessons that its prompts leave out.
        """
        ids = (group_id(self._job.run_id, arm.phase, scenario_id) for arm in self._arms)
        if not self._done or not all(id_ in self._done for id_ in ids):
            return False
        domain = self._context.scenarios[scenario_id].domain
        if domain not in self._asked:
            self._asked.add(domain)
            for arm in self._arms:
                arm.ask(scenario_id, 0)
        return True

    def served_by(self, epoch: int, scenario_id: str) -> set[Mode]:
        """Return the modes of the arms that the rollouts of one of a scenario serve too."""
        arms = (arm.phase for arm in self._arms)
        return {one.mode for one in arms if self.shared.get(one.epoch, {}).get(scenario_id) == epoch}

    def slot(self, scenario_id: str) -> Slot:
        """Return the first slot of a scenario in the last arm."""
        arm = self._arms[-1]
        return self._slot(arm.phase, arm.ask(scenario_id, 0), 0)

    def _in_order(
        self, asked: Sequence[tuple[Phase, RenderedPrompt]], index: int
    ) -> Sequence[tuple[Phase, RenderedPrompt]]:
        """Return what runs as rollout `index` of a scenario: one, or several side by side in random order."""
        scenario = asked[-1][1].scenario
        name, seed = scenario.id, SEED.of(self._job.settings)
        pair = [one for one in asked if self._made(one[0], name) <= index < one[0].rollouts_of(name)]
        if len(pair) > 1:
            self._note_torn([phase for phase, _ in pair], name, index)
        placed = pair[-1:]
        for one in pair[:-1]:
            placed.insert(place_among(seed, scenario, one[0], index, len(placed) + 1), one)
        return placed

    def _made(self, phase: Phase, scenario_id: str) -> int:
        return self._first.get(group_id(self._job.run_id, phase, scenario_id), 0)

    def _note_torn(self, phases: Sequence[Phase], scenario_id: str, index: int) -> None:
        """Forget rollouts on file whose pair an interrupt tore: hours may lie between its sides."""
        resumed = self._job.resumed
        ids = [rollout_id(self._job.run_id, phase, scenario_id, index) for phase in phases]
        if all(id_ in resumed.rollouts and self._is_usable(resumed.rollouts[id_]) for id_ in ids):
            return
        for id_ in ids:
            if (rollout := resumed.forget(id_)) is not None:
                self.torn[id_] = rollout

    def _is_usable(self, rollout: Rollout) -> bool:
        """Return whether a rollout on file can be taken: its test function has seen it, or still can."""
        scenario = self._context.scenarios[rollout.scenario_id]
        waits = rollout.status == "ok" and scenario.checker is not None
        judged = rollout.rollout_id in self._job.resumed.checker_results
        left = self._context.workspaces.left
        return not waits or judged or left(rollout.rollout_id, *self._job.made_of(scenario)) is not None

    def _slot(self, phase: Phase, question: RenderedPrompt, index: int, others: Sequence[Phase] = ()) -> Slot:
        job, scenario = self._job, question.scenario
        name = rollout_id(job.run_id, phase, scenario.id, index)
        call = ActorCall(
            task=question.task,
            prompt=question.prompt,
            temperature=phase.temperature,
            seed=rollout_seed(SEED.of(job.settings), scenario, phase, index),
            workspace=self._context.workspaces.new(name, *job.made_of(scenario)),
            timeout_s=scenario.timeout_s or TIMEOUT_S.of(job.settings),
            answer_max_bytes=ANSWER_MAX_BYTES.of(job.settings),
            part_thoughts=PART_THOUGHTS.of(job.settings),
            mocks=scenario.mocks,
            span_counts=self._context.span_counts,
        )
        return Slot(
            phase=phase,
            question=question,
            index=index,
            rollout_id=name,
            group_id=group_id(job.run_id, phase, scenario.id),
            call=call,
            user=self._user(question, name, phase.epoch, call.seed) if scenario.turns else None,
            pair=()
            if scenario.fixtures is not None
            else tuple(rollout_id(job.run_id, other, scenario.id, index) for other in others),
        )

    def _user(self, question: RenderedPrompt, name: str, epoch: int, seed: int) -> Callable[[], User]:
        """Return what opens the user of a rollout, for each attempt anew."""
        scenario, model = question.scenario, self._job.user
        first = task_text(scenario)
        if model is None or scenario.user is None:
            return partial(ScriptedUser, first, scenario.turns)

        key = f"{name.removeprefix(f'{self._job.run_id}.')}.user"
        return partial(
            PlayedUser,
            model,
            scenario,
            first,
            key=key,
            epoch=epoch,
            seed=seed,
            calls=self._context.calls,
            stop=self._context.breaker.stop,
        )


def alike(asked: Sequence[tuple[Phase, RenderedPrompt]]) -> list[tuple[Phase, Phase]]:
    """Return the phases that have the prompt and temperature of a later one, each with the last such.

    Sweeps of several kinds share with the last one alone.
    """
    found = []
    for n, (phase, prompt) in enumerate(asked[:-1], start=1):
        later = [
            other
            for other, its in asked[n:]
            if (its.prompt_stamp, other.temperature) == (prompt.prompt_stamp, phase.temperature)
            and (other is asked[-1][0] or other.mode == phase.mode)
        ]
        found += [(phase, later[-1])] if later else []
    return found

"""The contestant `gepa`: the optimizer of that name writes system texts; our rollouts are its evaluator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from random import Random
from types import ModuleType
from typing import TYPE_CHECKING

from pytest_tfgrpo.arena.contestants.calls_from_thread import LoopCalls, run_in_thread
from pytest_tfgrpo.arena.contestants.draws import drawn
from pytest_tfgrpo.arena.contestants.gepa_adapter import GepaAdapter, SearchTask, TaskAttempt
from pytest_tfgrpo.arena.contestants.reflection import SYSTEM, Reflection
from pytest_tfgrpo.arena.contestants.system_texts import SystemTexts
from pytest_tfgrpo.arena.protocol import Ring, Trained
from pytest_tfgrpo.core.errors import OptimizerError, SettingError, describe
from pytest_tfgrpo.core.scenarios import PromptPack, Scenario
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.suite.packs import pack_for

if TYPE_CHECKING:
    from gepa.core.state import GEPAState

MINIBATCH = 3
"""Train scenarios that a text is tried on before the dev split: gepa's own default."""
DEV_PASSES = 5
"""Passes over its dev scenarios that the budget must be good for; of a larger dev split it draws some."""


class Gepa:
    """Reflective evolution of the system text of each pack; lessons, slots and injections stay."""

    name = "gepa"
    needs_teacher = True

    def __init__(self) -> None:
        """Raises SettingError where the library is missing."""
        self._library = _library()
        self.identity: Mapping[str, Json] = {
            "library": "gepa",
            "version": version("gepa"),
            "instructions": stamp(SYSTEM),
        }

    async def train(self, ring: Ring) -> Trained:
        """Return the packs with the best texts found; raises OptimizerError."""
        if not ring.train:
            raise OptimizerError("gepa has no train scenario to try a text on; give some 'split: train'")
        search = _Search(self._library, ring)
        return await run_in_thread(search.run, "tfgrpo-gepa")


def most_questions(scenarios: Sequence[Scenario], packs: Mapping[str, PromptPack], rollouts: int) -> int:
    """Return how often the teacher may be asked: once after each minibatch, as far as the rollouts go."""
    train = [scenario for scenario in scenarios if scenario.split == "train"]
    pool = [scenario for scenario in scenarios if scenario.split == "dev"] or train
    members = Counter(pack_for(packs, scenario.domain).domain for scenario in train)
    start = min(len(pool), _dev_room(rollouts))
    return max(0, (rollouts - start - 1) // min(MINIBATCH, *members.values()))


def _dev_room(rollouts: int) -> int:
    return max(1, rollouts // DEV_PASSES)


class _Search:
    """One run of the library, which happens in a thread."""

    def __init__(self, library: ModuleType, ring: Ring) -> None:
        self._library = library
        self._ring = ring
        self._texts = SystemTexts(ring)
        pool = ring.dev or ring.train
        most = _dev_room(ring.left)
        self._dev = drawn(pool, ring.seed, "gepa.dev")[:most] if len(pool) > most else list(pool)
        self._pool = len(pool)

    def run(self, calls: LoopCalls) -> Trained:
        """Search until the budget is spent, and return the best texts."""
        from gepa.strategies.instruction_proposal import InstructionProposalSignature as Signature

        reflection = Reflection(
            self._ring,
            calls,
            template=Signature.default_prompt_template,
            text_of=lambda answer: Signature.output_extractor(answer)["new_instruction"],
        )
        adapter = GepaAdapter(self._ring, calls, self._texts, reflection, self._library.EvaluationBatch)
        best = self._best(adapter, reflection)
        packs = self._texts.packs(best)
        if reflection.given_up and not packs:
            raise OptimizerError(f"the teacher answers no question of gepa: {reflection.in_a_row[-1]}")
        carried = packs and self._ring.library.experiences
        library = self._texts.library(packs) if carried else None
        return Trained(
            library=library,
            packs=packs,
            note=self._note(adapter, reflection, len(packs)),
            teacher_limited=self._ring.teacher_calls_left <= 0 < self._ring.left,
        )

    def _best(self, adapter: GepaAdapter, reflection: Reflection) -> Mapping[str, str]:
        def over(state: GEPAState[object, int]) -> bool:  # noqa: ARG001 - the library's signature
            return min(self._ring.left, self._ring.teacher_calls_left) <= 0 or reflection.given_up

        sampler = PackSampler([self._texts.place_of(s) for s in self._ring.train], self._ring.seed)
        try:
            result = self._library.optimize(
                seed_candidate=self._texts.start,
                trainset=[SearchTask(scenario, dev=False) for scenario in self._ring.train],
                valset=[SearchTask(scenario, dev=True) for scenario in self._dev],
                adapter=adapter,
                batch_sampler=sampler,
                module_selector=_component,
                stop_callbacks=over,
                logger=_Silent(),
                track_best_outputs=False,
                seed=self._ring.seed,
            )
        except Exception as error:
            raise OptimizerError(f"gepa {version('gepa')} failed: {describe(error)}") from error
        return {place: str(text) for place, text in result.best_candidate.items()}

    def _note(self, adapter: GepaAdapter, reflection: Reflection, changed: int) -> str:
        """Return what a reader of the table must know."""
        parts = [f"{reflection.proposed} texts proposed, {adapter.passes} of them tried on the dev split"]
        parts += [] if changed else ["none was better than the start"]
        parts += [
            f"{_counted(counts)} {what}"
            for counts, what in (
                (self._texts.refusals, "refused"),
                (reflection.failures, "questions without an answer"),
            )
            if counts
        ]
        if not self._ring.dev:
            parts.append("without a dev split it chose on train scenarios")
        if len(self._dev) < self._pool:
            parts.append(f"it chose on {len(self._dev)} of {self._pool} scenarios, for the budget is small")
        if adapter.cut:
            made, wanted = adapter.cut
            parts.append(f"the budget ended within a batch, which ran {made} of its {wanted} scenarios")
        return "; ".join(parts)


class PackSampler:
    """Draws minibatches of train scenarios of one pack at a time, each as often as the others of its pack."""

    def __init__(self, places: Sequence[str], seed: int) -> None:
        """`places` has the pack of each train scenario."""
        self._random = Random(seed)
        self._packs = [[n for n, of in enumerate(places) if of == place] for place in sorted({*places})]
        self._waiting: list[list[int]] = [[] for _ in self._packs]
        self._drawn = 0

    def next_minibatch_ids(self, loader: object, state: object) -> list[int]:  # noqa: ARG002 - the library's
        """Return places of train scenarios, each once."""
        turn = self._drawn % len(self._packs)
        self._drawn += 1
        members, waiting = self._packs[turn], self._waiting[turn]
        batch: list[int] = []
        while len(batch) < min(MINIBATCH, len(members)):
            if not set(waiting) - set(batch):
                waiting += self._random.sample(members, len(members))
            batch.append(next(n for n in waiting if n not in batch))
            waiting.remove(batch[-1])
        return batch


class _Silent:
    """Keeps the library's log off the terminal."""

    def log(self, message: str) -> None:
        """Drop a message."""


def _component(state: object, trajectories: Sequence[TaskAttempt], *others: object) -> list[str]:  # noqa: ARG001
    """Return the text that the prompts of a minibatch carry."""
    return [trajectories[0].place]


def _counted(counts: Counter[str]) -> str:
    told = ", ".join(f"{code} {count}" for code, count in sorted(counts.items()))
    return f"{counts.total()} ({told})"


def _library() -> ModuleType:
    try:
        import gepa
    except ImportError as error:
        raise SettingError(
            "the optimizer 'gepa' needs the library gepa; install it with: pip install 'pytest-tfgrpo[gepa]' "
            f"({error})"
        ) from error
    return gepa

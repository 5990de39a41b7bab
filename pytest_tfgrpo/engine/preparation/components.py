"""Actor, optimizer and judge of a run, supplied or opened from their specs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.actors.registry import open_actor
from pytest_tfgrpo.core.errors import ActorError, SettingError
from pytest_tfgrpo.core.files import INI_FILES
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.settings import Settings
from pytest_tfgrpo.core.settings.agents import (
    ACTOR,
    JUDGE,
    JUDGE_VOTES,
    MAX_TOKENS,
    MODELS,
    OPTIMIZER,
    TEACHER,
    USER,
)
from pytest_tfgrpo.core.settings.permissions import ALLOW_PAID
from pytest_tfgrpo.core.settings.runs import CONCURRENCY, PROMPT_PACKS, SEED
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.engine.conversations.simulated_user import UserModel
from pytest_tfgrpo.engine.preparation.registry import open_model_judge, open_models, open_recording
from pytest_tfgrpo.learning.optimizer.registry import open_optimizer
from pytest_tfgrpo.llm.calls import HELLO
from pytest_tfgrpo.llm.limits.concurrency import AUTO, most_at_once, with_batches
from pytest_tfgrpo.llm.limits.queueing import current_ticket
from pytest_tfgrpo.llm.protocol import Completer, Spending
from pytest_tfgrpo.protocols import Actor, Judge, Optimizer

if TYPE_CHECKING:
    from pytest_tfgrpo.engine.conversations.simulated_user import UserModel
    from pytest_tfgrpo.engine.request import RunRequest
    from pytest_tfgrpo.llm.limits.budget import Budget
    from pytest_tfgrpo.llm.models import Models
    from pytest_tfgrpo.recording.replay import Replay

MODEL = "openai"
REPLAY = "replay"


@dataclass(frozen=True, kw_only=True, slots=True)
class Components:
    """Actor, optimizer, judge and models of a run."""

    actor: Actor
    optimizer: Optimizer
    judge: Judge | None
    budget: Budget
    """What they may spend."""
    closing: tuple[Callable[[], Awaitable[None]], ...]
    """Release what they share."""
    models: Mapping[str, Completer]
    """Language models that they call, by name."""
    keep_batches: Callable[[Path], None]
    """Says where batches are noted, and were by an interrupted process; raises JournalError."""
    user: UserModel | None = None
    """The model that plays the users of conversations; None: they say their turns."""
    replay: Replay | None = None
    """The recording that answers in their place."""

    @property
    def identities(self) -> dict[str, Json]:
        """What makes each of them the same in another run, by role."""
        roles: dict[str, Actor | Optimizer | Judge | UserModel] = {
            "actor": self.actor,
            "optimizer": self.optimizer,
        }
        if self.judge is not None:
            roles["judge"] = self.judge
        if self.user is not None:
            roles["user"] = self.user
        return {role: {"name": one.name, "identity": dict(one.identity)} for role, one in roles.items()}


def open_components(request: RunRequest, budget: Budget) -> Components:
    """Return who takes part; raises SettingError, RecordingError, PackError. No call is made yet."""
    root, settings, supplied = request.root, request.settings, request.supplied
    shared = _Shared(request, budget)
    actor = _open_actor(root, settings, supplied.actor, shared)
    return Components(
        actor=actor,
        optimizer=supplied.optimizer or _open_optimizer(root, settings, shared, actor.name),
        judge=_open_judge(settings, shared),
        user=_open_user(settings, shared),
        budget=budget,
        closing=shared.closing(),
        models=shared.models,
        keep_batches=shared.keep_batches,
        replay=shared.replay,
    )


def reached_first(
    people: Components, scenarios: Iterable[Scenario], phases: Iterable[Phase], done: Container[int]
) -> dict[str, Completer]:
    """Return the models besides the actor's that the phases which are not `done` will ask, by role.

    In a replay those whose first call was recorded.
    """
    ahead = [phase for phase in phases if phase.epoch not in done]
    wanted: dict[str, Json] = {}
    if any(phase.trains for phase in ahead):
        wanted["teacher"] = people.optimizer.identity.get("model")
    if people.judge is not None and ahead and any(scenario.rubric for scenario in scenarios):
        wanted["judge"] = people.judge.identity.get("model")
    if people.user is not None and ahead and any(scenario.user for scenario in scenarios):
        wanted["user"] = people.user.name
    models = {role: people.models[name] for role, name in wanted.items() if name in people.models}
    if people.replay is None:
        return models
    return {role: model for role, model in models.items() if people.replay.knows(model, HELLO)}


class _Shared:
    """What components share: the client of language models, or the recording that replaces it."""

    def __init__(self, request: RunRequest, spending: Spending) -> None:
        self._request, self._spending = request, spending
        self._root, self._settings = request.root, request.settings
        self.environ = request.environ
        self._models: Models | None = None
        self.replay: Replay | None = None
        self.models: dict[str, Completer] = {}
        """Those opened so far, by name."""

    def model(self, spec: str) -> Completer:
        """Return the language model that `spec` names; raises SettingError."""
        completer = self._open(spec)
        self.models[completer.name] = completer
        return completer

    def _open(self, spec: str) -> Completer:
        if self.replay is not None:
            return self.replay.completer(spec)
        if not spec.startswith(f"{MODEL}:"):
            raise SettingError(f"{spec!r} is not a language model; write {MODEL}:<model>")
        if self._models is None:
            file = MODELS.of(self._settings)
            self._models = open_models(
                self._root / file if file else None,
                environ=self.environ,
                spending=self._spending,
                max_tokens=MAX_TOKENS.of(self._settings),
                standing=lambda: current_ticket().waiting(),
                adapt=CONCURRENCY.of(self._settings) == AUTO,
                slots=self._request.shared.slots,
                dry=self._request.dry,
            )
        return self._models.open(spec)

    def keep_batches(self, path: Path) -> None:
        if self._models is not None:
            self._models.keep_batches(path)

    def closing(self) -> tuple[Callable[[], Awaitable[None]], ...]:
        return () if self._models is None else (self._models.aclose,)


def _open_actor(root: Path, settings: Settings, supplied: Actor | None, shared: _Shared) -> Actor:
    spec = ACTOR.of(settings)
    actor = supplied
    if actor is None:
        if spec is None:
            raise SettingError(
                "no actor is configured; set tfgrpo_actor in the ini file or pass --tfgrpo-actor=SPEC "
                f"(for example `offline` or `command:./agent`){_unread(root)}"
            )
        try:
            if spec.partition(":")[0] == REPLAY:
                shared.replay = open_recording(spec.partition(":")[2].strip(), root)
                actor = shared.replay.actor
            else:
                actor = open_actor(
                    spec, root=root, settings=settings.values, model=shared.model, environ=shared.environ
                )
        except ActorError as error:
            raise SettingError(f"actor: {error} ({settings.origins['actor']})") from error
    if actor.paid and not settings.learning and not ALLOW_PAID.of(settings):
        raise SettingError(
            f"actor {spec!r} costs money; set tfgrpo_allow_paid = true, or --tfgrpo-allow-paid=true, to "
            "allow it without --tfgrpo"
        )
    return actor


def _unread(root: Path) -> str:
    """Return which ini file names an actor that pytest does not read, as a pytest.ini goes before it."""
    read, *others = [path for name in INI_FILES if (path := root / name).is_file()] or [root]
    if read.stem.endswith("pytest"):
        for other in others:
            if ACTOR.ini.encode() in other.read_bytes():
                return f"; {other.name} sets it, but pytest reads {read.name} alone: keep the settings in one"
    return ""


def _open_optimizer(root: Path, settings: Settings, shared: _Shared, actor: str) -> Optimizer:
    spec = OPTIMIZER.of(settings)
    teacher = TEACHER.of(settings) or (actor if actor.startswith(f"{MODEL}:") else None)
    packs = root / PROMPT_PACKS.of(settings)
    if teacher is None:
        return open_optimizer(spec, packs=packs)
    return open_optimizer(spec, teacher=lambda: shared.model(teacher), packs=packs)


def _open_user(settings: Settings, shared: _Shared) -> UserModel | None:
    """Return the model that plays users; a plain run spends money only with ``allow_paid``."""
    spec = USER.of(settings)
    if spec == "script":
        return None
    model = shared.model(spec)
    if model.paid and not settings.learning and not ALLOW_PAID.of(settings):
        raise SettingError(
            f"user {spec!r} costs money; set tfgrpo_allow_paid = true to allow it without --tfgrpo, or "
            "tfgrpo_user = script"
        )

    return UserModel(completer=model)


def _open_judge(settings: Settings, shared: _Shared) -> Judge | None:
    """Return the judge; none in a plain run, which spends money only with ``allow_paid``."""
    spec = JUDGE.of(settings)
    if spec is None:
        return None
    model = shared.model(spec)
    if model.paid and not settings.learning and not ALLOW_PAID.of(settings):
        return None
    return open_model_judge(
        model,
        votes=JUDGE_VOTES.of(settings),
        seed=SEED.of(settings),
        concurrency=with_batches(most_at_once(CONCURRENCY.of(settings)), model),
    )

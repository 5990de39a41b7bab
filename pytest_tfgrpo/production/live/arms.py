"""Arms as the application sees them: values, the probability of the choice, and the lessons for a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pytest_tfgrpo.core.lessons import Experience
from pytest_tfgrpo.core.scenarios import PromptPack
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.learning.library.retrieval import pick, raw_score, weigh_by_relevance
from pytest_tfgrpo.production.live.config import ArmSpec
from pytest_tfgrpo.suite.packs import builtin_pack, pack_for
from pytest_tfgrpo.suite.prompt import merge_experiences


class LiveArm:
    """What a run works with."""

    __slots__ = ("_category", "_failed", "_spec", "propensity")

    def __init__(
        self, spec: ArmSpec, propensity: float, category: str, failed: Callable[[str, Exception], None]
    ) -> None:
        """`failed` receives the errors that the application must not see."""
        self._spec = spec
        self._category = category
        self._failed = failed
        self.propensity = propensity
        """Probability with which it was taken, in (0, 1]."""

    @property
    def name(self) -> str:
        """Its name in ``live.toml``."""
        return self._spec.name

    @property
    def values(self) -> Mapping[str, Json]:
        """Its values in ``live.toml``."""
        return self._spec.values

    def lessons(self, text: str, domain: str | None = None) -> str:
        """Return the lessons of the arm's library for the task `text`, as a block to put into a prompt.

        It is empty where none fits. They are those of `domain`, which is the run's category unless it is
        given; a run without category gets those of all domains.
        """
        return self._rendered(text, domain, whole=False)

    def system(self, text: str, domain: str | None = None) -> str:
        """Return the system prompt of the arm's prompt pack with the `lessons` for the task `text`."""
        return self._rendered(text, domain, whole=True)

    def _rendered(self, text: str, domain: str | None, *, whole: bool) -> str:
        try:
            return _render(self._spec, str(text), self._category if domain is None else domain, whole=whole)
        except Exception as error:  # noqa: BLE001 - an agent goes on without lessons
            self._failed("lessons", error)
            return ""


def _render(spec: ArmSpec, text: str, domain: str, *, whole: bool) -> str:
    pack = pack_for(spec.packs, domain) if spec.packs else replace(builtin_pack(), system="", inject=())
    lessons = () if spec.library is None else _picked(spec, pack, text, domain)
    return merge_experiences(pack if whole else replace(pack, system="", inject=()), lessons)


def _picked(spec: ArmSpec, pack: PromptPack, text: str, domain: str) -> tuple[Experience, ...]:
    """Return the lessons for a task, in order of preference (decision 16).

    Where the arm has prompt packs, those learned under another one are left out (decision 13); where the
    prompt is the application's own, it has no stamp to compare.
    """
    assert spec.library is not None
    scored = [
        (score, lesson)
        for lesson in spec.library.experiences
        if (not domain or lesson.domain == domain)
        and (not spec.packs or lesson.stamp_signature == pack.stamp)
        and (score := raw_score(lesson, pack.weights)) >= pack.min_reward
    ]
    if pack.retrieval == "relevant":
        scored, _ = weigh_by_relevance(scored, text)
    return pick(scored, pack.experience_slots)

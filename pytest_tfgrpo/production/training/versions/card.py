"""The model card of a policy version: what it is, what it learned from, and whether it may be deployed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_tfgrpo.core.lessons import Experience
from pytest_tfgrpo.core.texts.text import line, plural
from pytest_tfgrpo.production.training.versions.policy import PolicyVersion
from pytest_tfgrpo.production.training.versions.validation import Validation

_VERDICTS = {
    "validated": "It passed its validation.",
    "rejected": "Its validation rejected it.",
    "needs_approval": "It needs the approval of a person.",
}


def card_text(version: PolicyVersion, lessons: Sequence[Experience]) -> str:
    """Return the card as Markdown; the texts of lessons stand in a fence, which they cannot close."""
    return "\n".join(_lines(version, lessons)) + "\n"


def _lines(version: PolicyVersion, lessons: Sequence[Experience]) -> Iterator[str]:
    yield from (f"# Policy {version.name}", "")
    yield f"* content: `{version.content}`"
    weights = "weights of an external trainer" if version.checkpoint else "its weights are not changed"
    yield f"* model: `{_code(version.model)}`, actor `{_code(version.actor)}`; {weights}"
    yield from (f"* prompt pack of `{_code(d)}`: `{stamp[:12]}`" for d, stamp in version.packs.items())
    yield f"* library: `{version.library[:12]}`, {plural(version.lessons, 'lesson')}"
    if version.job:
        yield f"* learned from {', '.join(version.parents)} by job `{version.job}`, run `{version.run}`"
    counts = version.dataset.get("counts")
    if counts:
        yield f"* evidence: {counts.get('attempts', 0)} attempts in {counts.get('groups', 0)} groups"
    if version.judged is not None:
        yield from ("", "## Validation", "")
        yield from _validation(version.judged)
        yield from (f"* {line(one)}" for one in (version.verdict.said if version.verdict else ()))
    if version.lessons:
        yield from ("", "## Lessons", "", "```text")
        yield from (
            f"{lesson.id} {lesson.polarity:5} {line(lesson.domain)}: {line(lesson.summary32)}".replace(
                "`", "'"
            )
            for lesson in lessons
        )
        yield "```"


def _validation(found: Validation) -> Iterator[str]:
    yield _VERDICTS[found.outcome]
    yield ""
    if found.holdout_reward is not None and found.improvement_over_baseline is not None:
        yield (
            f"* mean score on the eval split: {found.holdout_reward:.3f}, "
            f"{found.improvement_over_baseline:+.3f} against the deployed version"
        )
    yield from (f"* `{_code(domain)}`: {score:.3f}" for domain, score in found.benchmark_scores.items())
    yield from (f"* {line(reason)}" for reason in found.reasons)


def _code(text: str) -> str:
    return line(text).replace("`", "'")

"""Report pages for a browser: runs with lessons, errors and hostile text, and visits to their pages."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.records import Frame, Group, Rollout, Run
from pytest_tfgrpo.gate.verdict import judge
from pytest_tfgrpo.report.comparison.compare import versus
from pytest_tfgrpo.report.page.html import html
from pytest_tfgrpo.report.value import build
from pytest_tfgrpo.suite.prompt import render_prompt
from support.builders import make_experience, make_frame, make_pack
from support.sweeps import SETTINGS, Credits, make_run, rated

if TYPE_CHECKING:
    from playwright.sync_api import Page

HOSTILE = (
    "</script><script>window.__hacked = 1</script><img src=x onerror='window.__hacked = 2'>"
    "<svg/onload=window.__hacked=3> {{ 7 * 7 }} \x1b]0;x\x07 \u202e <!-- ]]> "
    "javascript:window.__hacked=4 \" ' `"
)
DOMAINS = ("text", "dates", "orders")
PACK = make_pack("*", id="sample", system="Solve the task and say nothing else.")
WIDER = """() => [document.documentElement, ...document.querySelectorAll("dialog[open]")]
  .filter((box) => box.scrollWidth > box.clientWidth)
  .map((box) => `${box.tagName} ${box.scrollWidth} > ${box.clientWidth}`)"""
"""Boxes that scroll sideways."""
FAULTS = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
  .filter((one) => ["serious", "critical"].includes(one.impact))
  .map((one) => `${one.id}: ${one.nodes.length} x ${one.nodes[0].html.slice(0, 200)}`)"""
"""Says what axe-core, once it is in a page, finds there that is serious."""


@dataclass
class Visit:
    """A page in the browser, and what it did."""

    page: Page
    messages: list[str] = field(default_factory=list)
    """Console errors and warnings, and uncaught exceptions."""
    requests: list[str] = field(default_factory=list)
    """Addresses that it asked for, but its own."""

    def violations(self) -> list[str]:
        """Return the directives of its content security policy that were violated."""
        return self.page.evaluate("window.__violations")  # type: ignore[no-any-return]


Open = Callable[..., Visit]
"""Opens a page: its path or address, a fragment, and options of its context."""


def sample_page(run: Run, *others: Run) -> str:
    """Return the report page of a run, compared with `others` where there are any."""
    verdict = judge(run, baseline=None, settings=run.settings)
    value = build(run, verdict, sections=["cache: 12 hits"], files="out/demo/runs/run2")
    return html(value, run, versus(others[0], run, others[1:]) if others else None, others)


def first_run() -> Run:
    return _made("run1", 0.5, seed=1)


def second_run() -> Run:
    return _made("run2", 0.85, seed=2, settings={**SETTINGS, "seed": 7})


def hostile_run() -> Run:
    """Return a run in which every text that others wrote tries to become part of the page."""
    run = second_run()
    lesson = make_experience(9, summary32=HOSTILE, domain=HOSTILE)
    scenarios = tuple(
        replace(s, prompt=HOSTILE, input={HOSTILE: HOSTILE}, source=HOSTILE) for s in run.scenarios
    )
    scenarios = tuple(replace(s, domain=HOSTILE) if n % 2 else s for n, s in enumerate(scenarios))
    frames = tuple(
        make_frame(HOSTILE, kind=kind, input=text, output=HOSTILE, error=HOSTILE)
        for kind, text in (("model", HOSTILE), ("tool", {HOSTILE: [HOSTILE]}))
    )

    def harmful(rollout: Rollout) -> Rollout:
        checks = tuple(replace(check, reason=HOSTILE) for check in rollout.checks)
        failure = replace(rollout.failure, message=HOSTILE) if rollout.failure else None
        return replace(rollout, answer=HOSTILE, frames=frames, checks=checks, failure=failure)

    run = rated(run, {s.id: [0.5] for s in run.scenarios}, HOSTILE, HOSTILE)
    return replace(
        _asked(replace(_rollouts(run, harmful), scenarios=scenarios, packs=(replace(PACK, system=HOSTILE),))),
        library=Library(hash="f" * 64, experiences=(lesson,)),
        warnings=(HOSTILE,),
        reason=HOSTILE,
        settings={**run.settings, "actor": HOSTILE, HOSTILE: HOSTILE},
        stamps={HOSTILE: HOSTILE},
    )


def hostile_other() -> Run:
    """Return such a run to compare with, which names itself so too and gives other answers."""
    run = hostile_run()
    shown = _rollouts(run, lambda rollout: replace(rollout, answer=f"{HOSTILE} {rollout.index}"))
    return replace(shown, run_id=HOSTILE, status="aborted")


def answering(lines: Sequence[str]) -> Run:
    """Return a run whose rollouts all answer so."""
    return _rollouts(second_run(), lambda rollout: replace(rollout, answer="\n".join(lines)))


def _made(run_id: str, passed: float, *, seed: int, **changes: object) -> Run:
    """Return a run of 24 eval and 12 train scenarios, 3 rollouts each, with errors and a timeout."""
    rng = random.Random(seed)
    ids = [f"{domain}-{n}" for domain in ("count", "date", "order") for n in range(8)]

    def drawn(ids: Sequence[str], chance: float) -> dict[str, Credits]:
        return {
            id_: [1.0 if rng.random() < chance else 0.5 * (rng.random() < 0.2) for _ in range(3)]
            for id_ in ids
        }

    final = drawn(ids, passed) | {"count-3": [0, 0, 0.5], "date-1": [1, None, -1]}
    train = drawn([f"train-{n}" for n in range(12)], 0.5) | {"train-0": [1, 0, 0.5]}
    run = make_run(drawn(ids, 0.4), final, train, run_id=run_id, **changes)
    domain_of = {"c": "text", "d": "dates", "o": "orders", "t": "text"}
    scenarios = tuple(
        replace(
            s,
            domain=domain_of[s.id[0]],
            stamp=f"task of {s.id}",
            prompt=f"{s.id}: how many words are in 'a b c'?",
        )
        for s in run.scenarios
    )
    asked = _asked(_taught(replace(run, scenarios=scenarios, packs=(PACK,))))
    asked = rated(asked, {s.id: [0.9, 0.4] for s in scenarios}, why="says please")
    return _rollouts(asked, lambda rollout: replace(rollout, frames=_frames(rollout)))


def _taught(run: Run) -> Run:
    """Return the run with groups that taught its lessons."""
    baseline, train, final = run.phases
    assert train.revision is not None
    groups = tuple(group.group_id for group in train.groups if group.informative)
    applied = tuple(replace(operation, groups=groups) for operation in train.revision.applied)
    revision = replace(train.revision, applied=applied)
    return replace(run, phases=(baseline, replace(train, revision=revision), final))


def _asked(run: Run) -> Run:
    """Return the run as if asked with its pack, with lessons in the final sweep, all left out in training."""
    (pack,), scenarios = run.packs, {s.id: s for s in run.scenarios}

    def asked(rollout: Rollout) -> Rollout:
        lessons = run.library.experiences if rollout.mode == "eval" else ()
        prompt = render_prompt(pack, scenarios[rollout.scenario_id], lessons)
        carried = tuple(lesson.id for lesson in lessons)
        withheld = tuple(e.id for e in run.library.experiences) if rollout.mode == "train" else ()
        return replace(rollout, experiences=carried, left_out=withheld, prompt_stamp=prompt.stamp)

    return _rollouts(run, asked)


def _frames(rollout: Rollout) -> tuple[Frame, ...]:
    won = bool(rollout.checks) and all(check.passed for check in rollout.checks)
    tool = "count_words" if won else "guess"
    plan = make_frame(
        "m-1",
        kind="model",
        input=f"How many? {rollout.scenario_id}",
        output=f"I use {tool}.",
        cost_usd=0.0004,
    )
    call = make_frame(tool, input={"text": "a b c", "strict": won}, output=rollout.answer)
    return (
        plan,
        call,
        make_frame("m-1", kind="model", input="3", output="word " * (120 if won else 900), cost_usd=0.0006),
    )


def _rollouts(run: Run, change: Callable[[Rollout], Rollout]) -> Run:
    """Return the run with every rollout changed."""

    def changed(group: Group) -> Group:
        return replace(group, rollouts=tuple(map(change, group.rollouts)))

    phases = (replace(phase, groups=tuple(map(changed, phase.groups))) for phase in run.phases)
    return replace(run, phases=tuple(phases))

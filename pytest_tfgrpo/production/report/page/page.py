"""The page of the loop: one file, readable without scripts; equal streams give an equal page."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.deployment.monitor_state import monitor_state
from pytest_tfgrpo.production.deployment.serving import Serving
from pytest_tfgrpo.production.deployment.tallies import ArmPair
from pytest_tfgrpo.production.report.figures import LoopReport
from pytest_tfgrpo.production.report.page.drawings import REACH, bounds, shares
from pytest_tfgrpo.production.report.page.transitions import Transitions, transitions_of
from pytest_tfgrpo.production.report.page.version_facts import VersionFacts, versions_of_store
from pytest_tfgrpo.report.page import template

SCRIPTS = ("text.js", "sortable_table.js", "run_history.js")
OPEN = 6
"""Deployments that are open at first, and versions whose lessons are, the newest ones."""
LONGEST = 600
"""Characters of a text that others wrote."""
_MINUTE = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)")


@dataclass(frozen=True, kw_only=True, slots=True)
class LoopStory:
    """What the page shows beside the figures of the report."""

    serving: Serving | None
    """None where its row is damaged."""
    waits: str
    """What a ramp waits for."""
    transitions: Transitions
    versions: tuple[VersionFacts, ...]
    faults: tuple[str, ...] = ()
    """What cannot be read."""


def story_of(bus: Bus, store: str) -> LoopStory:
    """Return what the page shows; `store` is that of the versions. Raises BusError."""
    transitions, faults = transitions_of(bus), []
    try:
        serving: Serving | None = Deployments(bus).serving()
    except StoreError as error:
        serving = None
        faults.append(str(error))
    states: Mapping[str, str] = {} if serving is None else serving.states
    versions, fault = versions_of_store(bus, store, states, transitions.steps)
    return LoopStory(
        serving=serving,
        waits=monitor_state(bus).waits,
        transitions=transitions,
        versions=versions,
        faults=(*faults, *([fault] if fault else [])),
    )


def loop_page(name: str, report: LoopReport, story: LoopStory) -> str:
    """Return the page; `name` is that of the loop."""
    style, script = template.style("loop.css"), template.script(SCRIPTS)
    steps = story.transitions.steps
    return template.fill(
        "loop.html.j2",
        name=name,
        report=report,
        story=story,
        deployments=story.transitions.deployments[::-1],
        decisions=story.transitions.decisions[::-1],
        versions=story.versions[::-1],
        chart=shares(steps),
        bounds=bounds,
        reach=REACH,
        opened=OPEN,
        moment=moment,
        pair=pair,
        count=count,
        told=told,
        style=style,
        script=script,
        policy=template.policy(style, script),
    )


def moment(time: str) -> str:
    """Return a time to the minute; what is none as it is."""
    found = _MINUTE.match(time)
    return f"{found[1]} {found[2]}" if found else line(time, 40)


def told(text: str) -> str:
    """Return what others wrote, as one line that is not too long."""
    return line(text, LONGEST)


def pair(found: ArmPair | None, form: str = ",.0f") -> str:
    """Return a figure of the version and of its control; ``-`` where it is unknown."""
    return "-" if found is None else f"{found.canary:{form}} / {found.control:{form}}"


def count(value: float | None) -> str:
    """Return a whole number; ``-`` where it is unknown."""
    return "-" if value is None else f"{value:,.0f}"

"""Runs of several agents whose answers are letters of some length, and their page."""

from __future__ import annotations

import base64
import gzip
import json
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_tfgrpo.core.records import CheckResult, Run
from pytest_tfgrpo.report.agents.page import agents_page
from pytest_tfgrpo.report.agents.value import agents_value
from support.builders import make_scenario
from support.page.beside import DATA
from support.sweeps import make_run

SENTENCES = (
    "I looked up your order {n} in our system, and it left our warehouse on {day}.",
    "According to our policy, section {k}, you may send an item back within {d} days of delivery.",
    "The carrier reports that the parcel was handed over in {city}, signed by a neighbour.",
    "If the item arrived damaged, please keep the packaging until the claim is settled.",
    "The amount is returned to the card that you paid with, which takes three to five working days.",
    "You can follow each step in your account under Orders, then Returns.",
    "We checked the stock in {city}: {d} pieces are there, so an exchange is possible as well.",
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
CITIES = ("Hamburg", "Lyon", "Porto", "Gdansk", "Turin", "Aarhus")


def letters_of(shares: Mapping[str, float], count: int) -> dict[str, Run]:
    """Return a run of each agent, by name with the share that it solves: letters of 300 to 1,500 characters.

    Scenarios are tagged ``eu`` or ``us`` by turns.
    """
    scenarios = tuple(
        make_scenario(
            f"letter-{n}",
            domain=("refund", "shipping", "exchange")[n % 3],
            tags=(("eu", "us")[n % 2],),
            split="eval",
            prompt=f"A customer waits for order {1000 + n}: how much do they get back, and when?",
            stamp=f"{n:064x}",
        )
        for n in range(count)
    )
    return {name: _run(name, share, place, scenarios) for place, (name, share) in enumerate(shares.items())}


def _run(name: str, share: float, place: int, scenarios: Any) -> Run:
    luck = random.Random(place)
    solved = {s.id: float(luck.random() < share) for s in scenarios}
    run = make_run(
        None, {id_: [one] for id_, one in solved.items()}, run_id=f"run1-{name}", scenarios=scenarios
    )
    (phase,) = run.phases
    groups = []
    for n, group in enumerate(phase.groups):
        (rollout,) = group.rollouts
        right = solved[group.scenario_id] == 1
        answer = letter(n, right, random.Random(f"{place} {n}"))
        check = CheckResult(
            kind="contains", weight=1.0, credit=float(right), reason="" if right else "expected 'yes'"
        )
        groups.append(replace(group, rollouts=(replace(rollout, answer=answer, checks=(check,)),)))
    return replace(run, phases=(replace(phase, groups=tuple(groups)),))


def letter(n: int, right: bool, own: random.Random) -> str:
    """Return an answer: most of it depends on the scenario, some of it on the agent."""
    common = random.Random(n)
    lines = ["Thank you for your message."]
    for sentence in common.choices(SENTENCES, k=common.randint(4, 16)):
        rng = own if own.random() < 0.3 else common
        lines.append(
            sentence.format(
                n=n, k=rng.randint(1, 9), d=rng.randint(7, 40), day=rng.choice(DAYS), city=rng.choice(CITIES)
            )
        )
    return "\n\n".join([*lines, f"You get {'it' if right else 'nothing'} back: {'yes' if right else 'no'}."])


def page_of(runs: Mapping[str, Run], links: Mapping[str, str] | None = None) -> str:
    """Return the page of agents."""
    return agents_page(agents_value("run1", runs), runs, links or {})


def read(page: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return the index of a page, and the words of its rows."""
    found = {id_: text for _, id_, text in DATA.findall(page)}
    return json.loads(found["index"]), json.loads(gzip.decompress(base64.b64decode(found["words"])))

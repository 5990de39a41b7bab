"""The suites of `real_model.py`, made of own texts: 32 families each, in four domains.

* *form*: a word of a note is asked for, and the answer must stand alone, in six words at most
* *convention*: tickets go to one of two queues by house rules, a coin for each kind of ticket
* *content*: a number is asked for that few people know

A family has two train tasks, a dev task and two eval tasks. They share what is asked and no text. The texts
are fixed; the queues are drawn by SEED, so that each queue takes half of the kinds of each desk.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from real_notes import ASKED, FACT_TASKS, FACTS, NOTES
from real_tickets import TICKETS

SEED = 40
QUEUES = ("east", "west")
SPLITS = ("train", "train", "dev", "eval", "eval")
"""Of the five tasks of a family."""
WORDS = 6
"""Of an answer that stands alone, at most."""
SLOTS = 1
"""Lessons that a prompt carries: of more than one, a small model follows any."""

Name: TypeAlias = Literal["form", "convention", "content"]


@dataclass(frozen=True)
class Suite:
    """Tasks with their ground truth, and what a person would teach about them."""

    name: Name
    scenarios: Sequence[Mapping[str, Any]]
    """As in a scenario file."""
    hand_written: Sequence[tuple[str, str]]
    """Domain and text of each lesson."""
    max_tokens: int
    """Of an answer."""
    queues: Sequence[str] = ()
    """Those between which `real_dispatch.py` chooses; empty: the answer of the model is the answer."""


def form() -> Suite:
    """Return notes and a question for a word of each; the answer must have it, and nothing around it."""

    tasks = []
    for domain, fields in NOTES.items():
        for field, notes in fields.items():
            for n, marked in enumerate(notes):
                note, value = marked.replace("*", ""), marked.split("*")[1]
                alone = rf"\A\s*(?=.*\b{value}\b)\S+( \S+){{0,{WORDS - 1}}}\s*\Z"
                check = {"kind": "regex", "pattern": alone, "flags": "i"}
                tasks.append(_task(domain, field, n, f"{note} {ASKED[n].format(field=field)}", check))
    lessons = [(domain, "Answer with one word.") for domain in NOTES]
    return Suite("form", tasks, lessons, 96)


def rules() -> dict[tuple[str, str], str]:
    """Return the queue of each kind of ticket, by desk and kind."""
    coins = random.Random(SEED)
    found = {}
    for desk, kinds in TICKETS.items():
        drawn = [*QUEUES] * (len(kinds) // 2)
        coins.shuffle(drawn)
        found.update({(desk, kind): queue for kind, queue in zip(kinds, drawn, strict=True)})
    return found


def convention() -> Suite:
    """Return tickets, and the queue that the house puts each into."""
    queue_of = rules()
    tasks = [
        _task(desk, kind, n, f"Ticket: {text}", _put(queue_of[desk, kind]))
        for desk, kinds in TICKETS.items()
        for kind, texts in kinds.items()
        for n, text in enumerate(texts)
    ]
    lessons = [
        (desk, f"A {kind} ticket goes to the queue {queue}: use {queue}.")
        for (desk, kind), queue in queue_of.items()
    ]
    return Suite("convention", tasks, lessons, 12, QUEUES)


def _put(queue: str) -> Mapping[str, Any]:
    """Return the check that a ticket is put into a queue, and into no other."""
    return {"kind": "tool_calls", "order": "exact", "calls": [{"name": queue}]}


def content() -> Suite:
    """Return questions for the number that a rare word stands for."""
    tasks, lessons = [], []
    for domain, facts in FACTS.items():
        for word, (value, unit, fact) in facts.items():
            lessons.append((domain, fact))
            for n, asked in enumerate(FACT_TASKS[domain]):
                prompt = asked.format(w=word, u=unit)
                tasks.append(_task(domain, word, n, prompt, {"kind": "number", "value": value}))
    return Suite("content", tasks, lessons, 96)


SUITES: Mapping[str, Callable[[], Suite]] = {"form": form, "convention": convention, "content": content}

SYSTEM: Mapping[Name, str] = {
    "form": "You read notes.",
    "convention": "You route tickets. Answer with the queue.",
    "content": "Answer in one short sentence.",
}


def packs(place: str = "system") -> dict[str, str]:
    """Return the files of the prompt packs of all suites, by path in their folder; not stamped yet.

    `place` is where a prompt has their texts and lessons, see docs/scenarios.md.
    """
    domains = {"form": NOTES, "convention": TICKETS, "content": FACTS}
    files = {}
    manifest: dict[str, Any]
    for suite, system in SYSTEM.items():
        for domain in domains[suite]:
            manifest = {"id": domain, "domain": domain, "system": "system.md", "experience_slots": SLOTS}
            # what an answer looks like shares no word with a task
            policy = {"retrieval": "top"} if suite == "form" else {}
            if place != "system":
                policy["place"] = place
            if policy:
                manifest["policy"] = policy
            files[f"{domain}/manifest.json"] = json.dumps(manifest, indent=2) + "\n"
            files[f"{domain}/system.md"] = system + "\n"
    return files


def _task(domain: str, family: str, n: int, prompt: str, check: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": f"{domain}-{family}-{n + 1}",
        "domain": domain,
        "family": family,
        "split": SPLITS[n],
        "prompt": prompt,
        "checks": [dict(check)],
    }

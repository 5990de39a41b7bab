"""What the scripted model says in each case, and which runs of agents come of it.

Each agent has a model of its own by name, so that the server knows who is calling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

QUESTION = "What is the weather in Paris?"
QUESTION_OF_TWO = "What is the weather in Paris and in Rome?"
QUESTION_OF_NOWHERE = "What is the weather in Atlantis?"
ANSWER = "It is sunny in Paris."
ANSWER_OF_TWO = "It is sunny in Paris and cloudy in Rome."
ANSWER_OF_NOWHERE = "I do not know Atlantis."
OUTER, INNER = "toy-model", "toy-researcher"
"""Models of the agent that is asked, and of the one that it asks."""
DOWN = "the model is down"
ANSWERED = "answer"
"""Argument of a tool that answers."""
FOREVER = 99


@dataclass(frozen=True)
class Reply:
    """One answer of the server: calls of tools, or a text, or a status that is an error."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    status: int = 200


@dataclass(frozen=True)
class ToyRun:
    """One run of an agent."""

    models: tuple[str, ...]
    """Whose requests it made; several where one agent handed over to another."""
    parent: int | None = None
    """Place of the run that asked for it."""


@dataclass(frozen=True)
class Story:
    question: str
    replies: Mapping[str, tuple[Reply, ...]]
    """Of each model, in order."""
    runs: tuple[ToyRun, ...] = (ToyRun((OUTER,)),)
    session: str = ""
    user: str = ""
    content: bool = True
    """False: the instrumentation is told to leave the texts out."""


@dataclass(frozen=True)
class Spelling:
    """How a framework spells what the model asks of it."""

    handoff: tuple[str, dict[str, Any]] = ("transfer_to_researcher", {})
    ask: tuple[str, dict[str, Any]] = field(default_factory=lambda: ("ask_researcher", {"input": QUESTION}))
    """The call that makes another agent work."""
    answer_tool: str = ""
    """Tool that the model calls to answer; empty where it answers with a text."""


def weather(*cities: str) -> Reply:
    return Reply(calls=tuple(("weather", {"city": city}) for city in cities))


def stories(spelling: Spelling) -> dict[str, Story]:
    """Return the stories by the names of their cases, as a framework spells them."""
    say = Reply(ANSWER)
    simple = Story(QUESTION, {OUTER: (weather("Paris"), say)})
    both = (weather("Paris"), say)
    down = {OUTER: (Reply(status=500),) * FOREVER}
    two = {OUTER: (weather("Paris", "Rome"), Reply(ANSWER_OF_TWO))}
    nowhere = {OUTER: (weather("Atlantis"), Reply(ANSWER_OF_NOWHERE))}
    handed = {OUTER: (Reply(calls=(spelling.handoff,)),), INNER: both}
    asked = {OUTER: (Reply(calls=(spelling.ask,)), say), INNER: both}
    found = {
        "one-tool": simple,
        "parallel": Story(QUESTION_OF_TWO, two),
        "retry": replace(simple, replies={OUTER: (Reply(status=429), *both)}),
        "stream": simple,
        "tool-raises": Story(QUESTION_OF_NOWHERE, nowhere),
        "dead": replace(simple, replies=down),
        "subagent": Story(QUESTION, asked, runs=(ToyRun((OUTER,)), ToyRun((INNER,), 0))),
        "handoff": Story(QUESTION, handed, runs=(ToyRun((OUTER, INNER)),)),
        "session": replace(simple, session="s-1", user="u-1"),
        "no-content": replace(simple, content=False),
    }
    found |= {"chat-stream": simple, "web-dead": found["dead"]}
    return {name: _spelt(story, spelling) for name, story in found.items()}


def _spelt(story: Story, spelling: Spelling) -> Story:
    if not spelling.answer_tool:
        return story
    return replace(
        story,
        replies={
            model: tuple(
                Reply(calls=((spelling.answer_tool, {ANSWERED: one.text}),)) if one.text else one
                for one in replies
            )
            for model, replies in story.replies.items()
        },
    )

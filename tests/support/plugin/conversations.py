"""What the tests of plugin/test_conversations.py share with the slow ones."""

import json
from typing import Any

from support.fake_model import Body, text
from support.project import Project

AGENT = """
from pathlib import Path

from pytest_tfgrpo import AgentFailure, Frame, ProviderError


def log(context):
    with Path(__file__).with_name("calls.log").open("a") as file:
        file.write(f"{context.task.id} {context.seed} {context.session.turn}\\n")


def booking(context):
    '''Remembers what was said before in its state; learns to ask for the hour at once.'''
    log(context)
    state = context.session.state
    state.setdefault("heard", []).append(context.session.message)
    frames = [{"kind": "tool", "name": f"look{context.session.turn}", "output": "ok", "tokens": 1}]
    return {"answer": " / ".join(state["heard"]), "frames": frames, "model": "clerk", "tokens": 2,
            "cost_usd": 0.5, "sure": context.session.turn}


def plain(context):
    '''Knows nothing of conversations.'''
    return str(context.prompt.user)


async def listens(context):
    said = [f"{one['role']}={one['content']}" for one in context.session.messages]
    return "|".join(said)


def pupil(context):
    '''Looks the day up in the first turn, on some seeds only, until a lesson says so.'''
    log(context)
    state = context.session.state
    if context.session.turn == 1:
        state["knows"] = context.seed % 2 or "find_day" in context.prompt.system
        tool = "find_day" if state["knows"] else "guess_day"
        return {"answer": "For when?", "frames": [{"kind": "tool", "name": tool, "output": "x", "tokens": 2}]}
    return "booked" if state["knows"] else "sorry"


def breaks(context):
    if context.session.turn == 2:
        raise RuntimeError("fell over")
    return booking(context)


def forges(context):
    return {"answer": "x", "frames": [{"kind": "user", "name": "script", "output": "well done"}]}


def forges_late(context):
    if context.session.turn == 2:
        said = Frame(kind="user", name="script", output="well done")
        raise AgentFailure("fell over", "crash", frames=(said,))
    return booking(context)


def hangs(context):
    import time
    if context.session.turn == 2:
        time.sleep(60)
    return booking(context)


def down(context):
    if context.session.turn == 2:
        raise ProviderError("503")
    return booking(context)


def long(context):
    return "x" * 600
"""
BOOKING = [
    "A table for two.",
    {"user": "On Friday.", "checks": [{"kind": "contains", "value": "two. / On"}]},
    "At seven.",
]
SAME = {"domain": "text", "checks": [{"kind": "contains", "value": "At seven."}]}


def talks(
    project: Project, turns: Any = BOOKING, *, train: int = 0, sweep: int = 1, **fields: Any
) -> Project:
    """Write conversations; where there are several, the first message of each has its name."""

    def worded(name: str) -> Any:
        alone = train + sweep == 1 or not turns
        return turns if alone else [f"{name}: {turns[0]}", *turns[1:]]

    values = [
        {"id": f"{split}{n}", "split": split, "turns": worded(f"{split}{n}")} | SAME | fields
        for split, count in (("train", train), ("eval", sweep))
        for n in range(count)
    ]
    return project.write("talks.scenario.json", json.dumps(values)).agent(AGENT)


def rollouts(project: Project) -> list[dict[str, Any]]:
    return project.events("rollout")


USER = {
    "goal": "A table for four on Friday.",
    "persona": "In a hurry.",
    "knows": "Your name is Lee.",
    "max_turns": 4,
}
SECRET = "Your name is Lee."


def player(body: Body, attempt: int) -> Any:
    """Play the agent as `waiter`, and the user as `guest`, who is done once the table is booked."""
    if body["model"] == "waiter":
        assert SECRET not in json.dumps(body)
        said = [m["content"] for m in body["messages"] if m["role"] == "user"]
        return text("Booked for Lee." if "Lee." in said[-1] else "What is your name?")
    assert SECRET in body["messages"][0]["content"]
    heard = body["messages"][-1]["content"].removeprefix("assistant: ")
    return json.dumps({"over": heard.startswith("Booked"), "message": "" if "Booked" in heard else "Lee."})

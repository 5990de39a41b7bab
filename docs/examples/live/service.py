"""A service that answers tickets. Put your agent in the place of `ask_model`."""

import random
import sys
import time

import pytest_tfgrpo as tfgrpo

live = tfgrpo.open_live()  # once per process; threads and tasks share it


def serve(ticket: str, category: str, text: str) -> str:
    """Answer one ticket."""
    with live.run(ticket, category=category, prompt=text) as run:
        arm = run.choose("config")
        for turn in range(arm.values["max_turns"]):
            reply = ask_model(text, category, arm.name, turn)
            run.turn()
            if reply:
                run.end(reply, score=rate(category, turn))
                return reply
        run.end(completed=False)  # the run has failed: as bad as score=0
    return "A colleague will answer."


def ask_model(text: str, category: str, arm: str, turn: int) -> str:
    """Stand in for a model: refunds take five turns, and a thorough agent checks its answers."""
    time.sleep(0.002)
    needed = 4 if category == "refund" else 3 if arm == "thorough" else 0
    return f"Thank you for your ticket. {text} It is done." * 2 if turn >= needed else ""


def rate(category: str, turn: int) -> float:
    """Stand in for a check or a customer's rating, from 0 to 1: a question's answer should come at once."""
    late = category == "question" and turn > 0
    return random.uniform(0.3, 0.7) if late else random.uniform(0.6, 1.0)


if __name__ == "__main__":
    for n in range(int(sys.argv[1])):
        kind = ("refund", "question")[n % 2]
        serve(f"ticket-{n}", kind, f"My {kind} is about order {n}.")
    live.close()

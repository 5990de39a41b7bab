"""What the tests of production/test_forget.py share with the slow ones."""

from pytest_tfgrpo.production.evaluation.evaluator import Evaluator

GONE, KEPT = "chat-4711", "chat-47"
WORDS = "the lighthouse keeper said"
DONE = {"task_status": "completed_successfully"}


def settled(evaluator: Evaluator) -> None:
    for _ in range(1000):
        if not evaluator.step():
            return
    raise AssertionError("it goes on for ever")

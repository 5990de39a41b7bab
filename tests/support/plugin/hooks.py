"""What the tests of plugin/test_hooks.py share with the slow ones."""

MADE = """
from pytest_tfgrpo.core.scenarios import Attachment, Check, Criterion, Scenario

CHECKS = (Check(kind="exact", params={"value": "3"}),)

def pytest_tfgrpo_scenarios(config, scenarios):
    return [*scenarios, *(Scenario(
        id=f"made{n}", domain="text", split="eval", prompt=f"How many words has 'a b c', {n}?", checks=CHECKS
    ) for n in range(6))]
"""

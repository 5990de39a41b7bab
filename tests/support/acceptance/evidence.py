"""What the tests of learning/acceptance/test_evidence.py share with the slow ones."""

from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.learning.acceptance.evidence import Evidence, gather
from support.builders import PACK_STAMP, make_experience, make_pack, make_scenario

TEXTS = ("Count the words first.", "Sort the names first.", "Sort the names first.", "Add up the prices.")
"""The second and the third say the same under two ids."""
LESSONS = {
    f"l{n}": make_experience(n, id=f"l{n}", summary32=text, stamp_signature=PACK_STAMP)
    for n, text in enumerate(TEXTS)
}
SCENARIOS = [
    *(make_scenario(f"s{n}", prompt=f"Count words, sort names, letter {'abcdef'[n]}.") for n in range(3)),
    *(make_scenario(f"s{n}", split="dev", prompt=f"Add prices, letter {'abcdef'[n]}.") for n in (3, 4)),
    make_scenario("voted", truth="majority"),
    make_scenario("apart", split="eval"),
]


def gathered(groups: list[Group]) -> Evidence:
    return gather(groups, LESSONS, SCENARIOS, {"text": make_pack()})

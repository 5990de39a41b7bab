"""The families of tasks that come without one."""

from support.builders import make_scenario

from pytest_tfgrpo.learning.evidence_families import with_families

KNOWN = {
    s.id: s
    for s in (
        make_scenario("a", family="count", prompt="How many words are in the text 'one two'?"),
        make_scenario("b", family="sum", prompt="What is the gross price of the order '17'?"),
        make_scenario("c", family="other", domain="other", prompt="What is the net price of the order '18'?"),
    )
}


def family(prompt: str, **changes: object) -> str | None:
    task = make_scenario("new", family=None, prompt=prompt, **changes)
    found = with_families({**KNOWN, "new": task}, frozenset({"new"}))
    assert {id_: found[id_] for id_ in KNOWN} == KNOWN
    return found["new"].family


def test_a_task_is_of_the_family_that_it_shares_most_words_with() -> None:
    assert family("How many words are in the text 'some other data'?") == "count"
    assert family("What is the net price of the order '18'?") == "sum"
    assert family("What is the net price of the order '18'?", domain="other") == "other"


def test_a_task_unlike_all_others_has_none() -> None:
    assert family("Translate the letter into French.") is None
    assert family("What is the price of the bread, and how long does the baker of it sleep?") is None
    assert family("How many words are in the text 'x'?", domain="third") is None

"""The check on the tools that were called."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_frame
from support.reached import reached, reaches

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.scoring.checks.calls import ORDERS, _is


def frames(*names, **arguments):
    return [make_frame(name, input=arguments) for name in names]


def calls(*names):
    return [{"name": name} for name in names]


@pytest.mark.parametrize(
    ("order", "called", "passed"),
    [
        ("exact", "ab", True), ("exact", "abc", False), ("exact", "ba", False), ("exact", "", False),
        ("in_order", "ab", True), ("in_order", "xaxbx", True), ("in_order", "ba", False),
        ("in_order", "a", False), ("any_order", "ba", True), ("any_order", "bxa", True),
        ("any_order", "aa", False), ("any_order", "", False),
    ],
)  # fmt: skip
def test_an_order_says_which_calls_pass(judge, order, called, passed):
    assert judge("tool_calls", frames=frames(*called), calls=calls("a", "b"), order=order).passed is passed


def test_calls_pass_in_order_among_others_unless_told_otherwise(judge):
    assert judge("tool_calls", frames=frames("x", "a", "x", "b"), calls=calls("a", "b")).passed


def test_an_exact_list_of_no_calls_forbids_every_tool(judge):
    assert judge("tool_calls", calls=[], order="exact").passed
    assert not judge("tool_calls", frames=frames("a"), calls=[], order="exact").passed


def test_model_calls_are_not_tool_calls(judge):
    assert not judge("tool_calls", frames=[make_frame("a", kind="model")], calls=calls("a")).passed


def test_arguments_are_compared_as_a_subset(judge):
    wanted = [{"name": "a", "arguments": {"column": "amount"}}]
    assert judge("tool_calls", frames=frames("a", column="amount", unit="€"), calls=wanted).passed
    result = judge("tool_calls", frames=frames("a", column="date"), calls=wanted)
    assert result.reason == "expected calls (in_order) [a {'column': 'amount'}], got [a {'column': 'date'}]"
    assert not judge("tool_calls", frames=[make_frame("a", input="amount")], calls=wanted).passed


def test_each_call_needs_a_frame_of_its_own(judge):
    wanted = [{"name": "a"}, {"name": "a", "arguments": {"x": 1}}]
    assert judge(
        "tool_calls", frames=[*frames("a", x=1), *frames("a", x=2)], calls=wanted, order="any_order"
    ).passed
    assert not judge("tool_calls", frames=frames("a", x=1), calls=wanted, order="any_order").passed


inputs = st.dictionaries(st.sampled_from("xy"), st.integers(0, 1), max_size=2)
called = st.lists(st.builds(lambda n, i: make_frame(n, input=i), st.sampled_from("ab"), inputs), max_size=4)
wanted = st.lists(
    st.builds(lambda n, i: {"name": n, "arguments": i}, st.sampled_from("ab"), inputs), max_size=3
)


some = st.permutations([{"name": "a", "arguments": {"x": 1}}, {"name": "b", "arguments": {}}])


@st.composite
def both(draw):
    """Draw what is wanted, and calls among which it often is, in some order."""
    asked = draw(some | wanted)
    made = [make_frame(one["name"], input={**draw(inputs), **one["arguments"]}) for one in asked]
    return asked, draw(
        st.sampled_from([made, made[::-1]]) | st.permutations([*made, *draw(called)][:4]) | called
    )


@reaches("fits", "does not fit")
@given(both())
def test_any_order_means_that_some_order_of_some_calls_fits(drawn):
    wanted, called = drawn
    fits = any(all(map(_is, some, wanted)) for some in permutations(called, len(wanted)))
    reached("fits" if fits else "does not fit", wanted)
    assert ORDERS["any_order"](wanted, called) is fits


@reaches("exact", "in_order", "any_order", "none")
@given(both())
def test_exact_implies_in_order_which_implies_any_order(drawn):
    wanted, called = drawn
    exact, in_order, any_order = (
        ORDERS[order](wanted, called) for order in ("exact", "in_order", "any_order")
    )
    strictest = "exact" if exact else "in_order" if in_order else "any_order" if any_order else "none"
    reached(strictest, wanted)
    assert exact <= in_order <= any_order


def test_hostile_input_of_a_call_is_shown_shortly(judge):
    deep: list = []
    for _ in range(50_000):
        deep = [deep]
    result = judge("tool_calls", frames=[make_frame("a", input=deep)] * 500, calls=calls("b"))
    assert "a list nested too deeply" in result.reason
    assert len(result.reason) < 2000
    while deep:
        deep = deep.pop()


def failing(name, **arguments):
    return make_frame(name, input=arguments, error="no such page")


def test_of_many_calls_twenty_are_shown_on_each_side(judge):
    names = [f"t{n}" for n in range(25)]
    result = judge("tool_calls", frames=frames(*names), calls=calls(*names[::-1]))
    wanted = ", ".join(names[:4:-1])
    got = ", ".join(f"{name} {{}}" for name in names[:20])
    assert result.reason == f"expected calls (in_order) [{wanted}], got [{got}]"


def test_a_call_can_be_asked_to_have_ended_well_or_in_an_error(judge):
    wanted = [{"name": "search", "status": "error"}, {"name": "search", "status": "ok"}]
    assert judge("tool_calls", frames=[failing("search"), *frames("search")], calls=wanted).passed
    result = judge("tool_calls", frames=frames("search", "search"), calls=wanted)
    assert result.reason.startswith("expected calls (in_order) [search (error), search (ok)], got ")


def test_a_forbidden_call_fails_whatever_else_was_called(judge):
    forbidden = [{"name": "delete", "arguments": {"all": True}}]
    assert judge("tool_calls", frames=frames("search", "delete"), forbidden=forbidden).passed
    result = judge("tool_calls", frames=[*frames("search"), *frames("delete", all=True)], forbidden=forbidden)
    assert result.reason == "delete {'all': True} is forbidden, and was called 1 time"
    forbidden = [{"name": "rm"}, *forbidden]
    assert not judge("tool_calls", frames=frames("delete", all=True), forbidden=forbidden).passed


def test_only_allowed_tools_may_be_called(judge):
    assert judge("tool_calls", frames=frames("search"), allowed=["search", "open"]).passed
    result = judge("tool_calls", frames=frames("search", "rm"), allowed=["search"])
    assert result.reason == "called 'rm', allowed are ['search']"
    assert not judge("tool_calls", frames=frames("search"), allowed=[]).passed
    many = judge("tool_calls", frames=frames(*"gfedcba"), allowed=["g"])
    assert many.reason == "called 'a', 'b', 'c', 'd', 'e', allowed are ['g']"


def test_the_number_of_calls_has_bounds(judge):
    assert judge("tool_calls", frames=frames("a", "b"), min=2, max=2).passed
    assert (
        judge("tool_calls", frames=frames("a"), min=2).reason == "expected at least 2 calls of tools, got 1"
    )
    result = judge("tool_calls", frames=frames("a", "b"), min=1, max=1)
    assert result.reason == "expected at most 1 calls of tools, got 2"
    assert judge("tool_calls", frames=frames("a"), max=0).reason == "expected at most 0 calls of tools, got 1"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "#/checks/0: "),
        ({"min": 3, "max": 2}, "#/checks/0/max: 2 is less than min, 3"),
        ({"order": "exact", "min": 1}, "#/checks/0/order: is the order of calls"),
    ],
)
def test_bounds_that_say_nothing_or_contradict_each_other_are_refused(load, params, message):
    with pytest.raises(ScenarioError, match=message):
        load("tool_calls", **params)

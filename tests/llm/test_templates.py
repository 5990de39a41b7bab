"""Fences: no content, whoever wrote it, closes one or is taken for a place to fill."""

from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.llm.templates import Block, fenced, fill, mark_for, places


@given(st.lists(st.text(max_size=40), min_size=1, max_size=4), st.data())
def test_no_content_contains_a_mark_even_if_it_was_made_from_one(
    texts: list[str], data: st.DataObject
) -> None:
    blocks = [Block(f"b{n}", text) for n, text in enumerate(texts)]
    for _ in range(3):  # an agent that guesses the marks and prints them changes them
        marks = [fence.split("]")[0].split()[-1] for fence in fenced(blocks)]
        for fence, block, mark in zip(fenced(blocks), blocks, marks, strict=True):
            assert fence == f"[begin {block.name} {mark}]\n{block.text}\n[end {block.name} {mark}]"
            assert not any(mark in other.text.lower() for other in blocks)
        victim = data.draw(st.integers(0, len(blocks) - 1))
        spelled = data.draw(st.sampled_from([str.lower, str.upper]))
        name, text = blocks[victim]
        blocks[victim] = Block(name, f"{text}{spelled(' '.join(marks))}")


def test_equal_blocks_are_fenced_alike_in_every_message_so_that_servers_can_reuse_a_prefix() -> None:
    shared = Block("lessons", "L1 | do | count")
    assert fenced([shared, Block("task", "a")])[0] == fenced([shared, Block("task", "b")])[0]


@given(st.lists(st.text(alphabet="0123456789abcdefABCDEF", max_size=60), min_size=1, max_size=4))
def test_a_mark_is_in_none_of_the_texts_it_fences(texts: list[str]) -> None:
    # Two digits, so that collisions are common here.
    mark = mark_for(texts, texts, digits=2)
    assert mark == mark_for(texts, texts, digits=2)
    assert not any(mark in text.lower() for text in texts)


hostile = st.text(max_size=20) | st.sampled_from(["{{b}}{{a}}", "{{", "}}", "\\1", "{0}"])


@given(st.fixed_dictionaries({"a": hostile, "b": hostile}))
def test_places_are_filled_in_one_pass(values: dict[str, str]) -> None:
    template = "<{{a}}|{{b}}|{{a}}>"
    assert places(template) == {"a", "b"}
    assert fill(template, values) == f"<{values['a']}|{values['b']}|{values['a']}>"


def test_a_mark_is_in_none_of_the_texts_also_where_one_is_empty() -> None:
    first = mark_for(["a"], [])
    second = mark_for(["a"], ["", f"x{first.upper()}x"])
    third = mark_for(["a"], [first, "", second])
    assert len({first, second, third}) == 3

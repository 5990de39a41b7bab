"""Blocks of code in a text."""

import pytest

from pytest_tfgrpo.core.texts.fences import fences


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("none", []),
        ("```json\n1\n```", [("json", "1")]),
        ("Here:\n```JSON\n1\n```\nHope it helps.", [("json", "1")]),
        ("Here: ```json\n1\n```", [("json", "1")]),
        ("```json\n1\n``` Hope it helps.", [("json", "1")]),
        ("```json\n1```", [("json", "1")]),
        ("```1```", [("", "1")]),
        ("It is ```json 1``` now", [("json", " 1")]),
        ("~~~\n1\n~~~", [("", "1")]),
        ("````\n```\n1\n```\n````", [("", "```\n1\n```")]),
        ("- a list:\n\n  ```json\n  1\n  ```", [("json", "  1")]),
        ("> ```json\n> 1\n> ```", [("json", "1")]),
        ("```json\r\n1\r\n```\r\n", [("json", "1")]),
        ("```\n1\n```\n```python\n2\n```", [("", "1"), ("python", "2")]),
        ('```json\n{"a": "```js\\nx\\n```"}\n```', [("json", '{"a": "```js\\nx\\n```"}')]),
        ("```json\n1", [("json", "1")]),
    ],
)
def test_blocks_are_found_wherever_models_put_them(text: str, blocks: list[tuple[str, str]]) -> None:
    assert [(fence.language, fence.text) for fence in fences(text)] == blocks


def test_a_block_knows_its_lines_and_whether_it_ends() -> None:
    whole, half = fences("a\n```\n1\n```\n```\n2")
    assert (whole.first, whole.last, whole.closed) == (1, 3, True)
    assert (half.first, half.last, half.closed) == (4, 5, False)


@pytest.mark.parametrize(
    "text", ["`" * 300_000, "~" * 300_000, "```\n" * 50_000, "``` " * 50_000, "a ```x\n" * 20_000]
)
def test_a_hostile_text_takes_no_long_time(text: str) -> None:
    fences(text)


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("first ```a 1``` then ```b 2``` end", [("b", " 2")]),
        ("~~~\n1 ~~~\n~~~", [("", "1 ~~~")]),
        ("```py\n1```", [("py", "1")]),
        ("```c++\n1\n```", [("c++", "1")]),
    ],
)
def test_which_of_several_marks_ends_a_block(text: str, blocks: list[tuple[str, str]]) -> None:
    assert [(fence.language, fence.text) for fence in fences(text)] == blocks

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.harness.report.markdown import escaped


@pytest.mark.parametrize(
    "text",
    ["a | b", "<script>", "[x](http://evil.example)", "@everyone", "`code`", "# head", "![](x)", "a\nb"],
)
def test_foreign_text_says_just_what_it_says(text: str) -> None:
    shown = escaped(text)
    assert "\n" not in shown
    assert "<" not in shown
    assert re.sub(r"\\(.)", r"\1", shown).replace("&lt;", "<").replace("&gt;", ">") == " ".join(text.split())


@given(st.text(max_size=80))
def test_no_text_ends_its_cell(text: str) -> None:
    assert re.search(r"(?<!\\)(?:\\\\)*\|", escaped(text)) is None

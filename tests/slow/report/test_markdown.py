import re

from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.report.markdown import escaped


@given(st.text(max_size=80))
def test_no_text_ends_its_cell(text: str) -> None:
    assert re.search(r"(?<!\\)(?:\\\\)*\|", escaped(text)) is None

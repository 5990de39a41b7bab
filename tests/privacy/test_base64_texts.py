from base64 import b64encode

import pytest

from pytest_tfgrpo.privacy.base64_texts import Base64Text, base64_texts


@pytest.mark.parametrize("said", ["ann@ex.io", "ann@exa.io", "ann@exam.io", "two\r\nlines\tof it"])
@pytest.mark.parametrize("before", ["", "see ", "data:text/plain;base64,", "a/path/"])
def test_a_run_of_base64_is_read_with_all_of_its_padding(said: str, before: str) -> None:
    run = b64encode(said.encode()).decode()
    assert list(base64_texts(f"{before}{run}, ok")) == [Base64Text(len(before), len(before) + len(run), said)]


def test_every_run_is_read_and_of_bytes_that_are_no_text_none() -> None:
    first, second = (b64encode(said).decode() for said in (b"first text", b"second text"))
    odd = b64encode(b"\xff\x00 no text").decode()
    assert [found.text for found in base64_texts(f"{first} {odd} {second}")] == ["first text", "second text"]

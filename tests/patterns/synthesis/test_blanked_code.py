"""Code without what a fix changed."""

from pytest_tfgrpo.patterns.synthesis.blanked_code import blanked_code


def test_what_a_changed_constant_leads_to_in_several_steps_is_blanked() -> None:
    code = "A = 1\nB = A + 1\nC = B + 1\nD = C + 1\n\ndef last():\n    return D\n"
    fixed = code.replace("A = 1", "A = 2")
    found = blanked_code({"m.py": code.encode()}, {"m.py": fixed.encode()}, ["m.py"], "no")
    assert b"_blank_asked" in found["m.py"].partition(b"def last")[2]

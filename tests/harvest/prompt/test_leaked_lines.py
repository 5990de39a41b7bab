"""Lines of a fix that stand in a statement."""

import pytest

from pytest_tfgrpo.harvest.prompt.leaked_lines import FixedCode, fixed_code, without_leaks
from pytest_tfgrpo.harvest.proof.fix_trees import FixTrees
from pytest_tfgrpo.sandbox.archives import ArchiveEntry

LINE = "total = sum(price * count for price, count in cart)"
PLAIN = "return lowest_price or default_price"
BARE = ["".join(line.split()) for line in (LINE, PLAIN)]
FIXED = FixedCode(lines=frozenset(BARE), text="\n".join(BARE), before="")
BROKEN = ["total = sum(price * count\n  for price, count in cart)", "return lowest_price\n  or default_price"]
AROUND = ["{}", "The sum is wrong.\n{}", "{}\nIt is wrong.", "Wrong.\n{}\nPlease repair it."]


@pytest.mark.parametrize("leak", [LINE, f"    {LINE}", PLAIN, *BROKEN])
@pytest.mark.parametrize("around", AROUND)
def test_a_line_of_the_fix_is_cut_wherever_it_stands_and_however_it_is_broken(leak: str, around: str) -> None:
    kept, leaks = without_leaks(around.format(leak), FIXED)
    assert kept == "\n".join(row for row in around.split("\n") if row != "{}")
    assert leaks == tuple(row.strip() for row in leak.split("\n"))


@pytest.mark.parametrize(
    ("row", "leaks"),
    [
        ("Use `sum(price * count for price` instead.", True),
        ("Use `price` instead.", False),
        ("sum(price * count", True),
        ("the lowest price of all", False),
        ("> - `lowest_price or default_price`", True),
        ("`lowest_price or DEFAULT`", False),
        ("cart) and more (of it)", False),
    ],
)
def test_a_good_part_of_a_line_is_a_leak_where_it_is_code_and_new(row: str, leaks: bool) -> None:
    assert bool(without_leaks(row, FIXED)[1]) is leaks
    known = FixedCode(lines=FIXED.lines, text=FIXED.text, before=FIXED.text)
    assert without_leaks(row, known)[1] == (), "it stood there before the fix"


def test_what_is_left_has_no_empty_fences_and_no_blank_lines_in_a_row() -> None:
    kept, leaks = without_leaks(f"A\n\n```python\n{LINE}\n```\n\n\n\nB\n", FIXED)
    assert (kept, leaks) == ("A\n\nB", (LINE,))


def test_the_code_of_a_fix_are_its_new_lines_that_say_something() -> None:
    def tree(**files: bytes) -> dict[str, ArchiveEntry]:
        return {name.replace("__", "."): ArchiveEntry(name=name, data=data) for name, data in files.items()}

    after = (
        b"old = known(value)\nnew = made(value, 1)\n# new = made(value, 2)\nx = 1\n"
        b"only words without signs\n  return lowest_price\n"
    )
    reference = tree(a__py=after, a__md=b"text = of(no, code)\n", b__py=b"data = raw(bytes)\0\n")
    reference["c.py"] = ArchiveEntry(name="c.py", link="a.py")
    base = tree(a__py=b"old = known(value)\ngone = known(value)\n", z__py=b"other = file(value)\n")
    found = fixed_code(FixTrees(base=base, hidden={}, reference=reference))
    assert found.lines == {"new=made(value,1)", "returnlowest_price"}
    assert set(found.text.split("\n")) == found.lines
    assert found.before == "old=known(value)\ngone=known(value)"


@pytest.mark.parametrize(("line", "leaks"), [("total=f(a,b)", True), ("tota=f(a,b)", False)])
def test_a_line_of_twelve_characters_says_what_the_fix_is(line: str, leaks: bool) -> None:
    entry = ArchiveEntry(name="a.py", data=line.encode())
    fixed = fixed_code(FixTrees(base={}, hidden={}, reference={"a.py": entry}))
    assert bool(fixed.lines) is leaks
    assert bool(without_leaks(f"  {line.replace('=', ' = ')}", fixed)[1]) is leaks
    known = FixedCode(lines=frozenset(), text=f"{line};", before="")
    assert bool(without_leaks(f"`{line}`", known)[1]) is leaks

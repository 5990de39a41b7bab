"""Lines of a fix that stand in a statement."""

import pytest

from pytest_tfgrpo.harvest.prompt.leaked_lines import FixedCode, without_leaks

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

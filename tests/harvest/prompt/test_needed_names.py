"""Names that hidden tests need: which are told, where they are defined, and what is known already."""

from collections.abc import Mapping

import pytest

from pytest_tfgrpo.harvest.prompt.needed_names import needed_names
from pytest_tfgrpo.harvest.proof.fix_trees import FixTrees
from pytest_tfgrpo.sandbox.archives import ArchiveEntry

TEST = "tests/test_shop.py"


def tree(files: Mapping[str, str]) -> dict[str, ArchiveEntry]:
    return {path: ArchiveEntry(name=path, data=text.encode()) for path, text in files.items()}


def needed(test: str, after: Mapping[str, str], before: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the names of a fix whose one test file and other files are given."""
    return needed_names(FixTrees(base=tree(before or {}), hidden=tree({TEST: test}), reference=tree(after)))


OLD = {"shop/a.py": "def count(): ...\n"}


@pytest.mark.parametrize(
    ("test", "fix"),
    [
        ("from shop.a import draw\n", "def draw(): ...\n"),
        ("from shop.a import (\n    count,\n    draw,\n)\n", "class draw: ...\n"),
        ("import shop.a.draw\n", "draw = 1\n"),
        ("const { draw } = require('./a')\n", "function draw() {}\n"),
        ("assert shop. draw(3)\n", "async def draw(): ...\n"),
        ("count(1, draw=2)\n", "def count(n, draw): ...\n"),
        ("count(draw = 2)\n", "    self.draw = 1\n"),
    ],
    ids=["import", "lines", "module", "require", "attribute", "second-argument", "first-argument"],
)
def test_a_name_that_the_tests_use_and_the_fix_adds_is_told(test: str, fix: str) -> None:
    assert needed(test, {"shop/a.py": fix}, OLD) == ("`draw` in `shop/a.py`",)


@pytest.mark.parametrize(
    ("test", "fix", "before"),
    [
        ("draw = 1\n", "def draw(): ...\n", {}),
        ("count(draw == 2)\n", "def draw(): ...\n", {}),
        ("x = 'from shop.a import draw'\n", "def draw(): ...\n", {}),
        ("# from shop.a import draw\n", "def draw(): ...\n", {}),
        ("from shop.a import draw\n", "x = 'draw'\n", {}),
        ("from shop.a import draw\n", "def redraw(): ...\n", {}),
        ("from shop.a import draw\n", "def draw(): ...\n", {"README.md": "To draw, call us.\n"}),
        ("from shop.a import draw\n", "def draw(): ...\n", {TEST: "from shop.a import draw\n"}),
    ],
    ids=["local", "compared", "text", "comment", "quoted-in-fix", "other-word", "known-word", "used-before"],
)
def test_a_name_that_is_known_or_of_no_need_is_not_told(
    test: str, fix: str, before: Mapping[str, str]
) -> None:
    assert needed(test, {"shop/a.py": fix}, {**OLD, **before}) == ()


def test_a_longer_word_before_the_fix_does_not_make_a_name_known() -> None:
    assert needed("import draw\n", {"shop/a.py": "def draw(): ...\n"}, OLD | {"b": "redraw"}) == (
        "`draw` in `shop/a.py`",
    )


@pytest.mark.parametrize(
    ("after", "place"),
    [
        ({"a.py": "draw()\n", "lib/b.py": "def draw(): ...\n"}, "lib/b.py"),
        ({"a.py": "draw()\n", "lib/b.py": "def draw(): ...\n", "lib/cc.py": "draw: int = 1\n"}, "lib/b.py"),
        ({"a.py": "def draw(): ...\n", "lib/b.py": "class draw: ...\n"}, "a.py"),
        ({"a.py": "draw()\n", "lib/b.py": "draw()\n"}, "a.py"),
        ({"a.py": "if draw == 1: ...\n", "lib/b.py": "draw = 1\n"}, "lib/b.py"),
        ({"bb.py": "draw = 1\n", "aa.py": "draw = 1\n"}, "aa.py"),
        ({"README.md": "class draw\n", "lib/b.py": "draw()\n"}, "lib/b.py"),
    ],
    ids=[
        "defined-later",
        "defined-twice-later",
        "defined-first",
        "used-alone",
        "compared",
        "by-name",
        "no-code",
    ],
)
def test_a_name_is_told_where_it_is_defined_the_shortest_path_first(
    after: Mapping[str, str], place: str
) -> None:
    assert needed("import draw\n", after, dict.fromkeys(after, "\n")) == (f"`draw` in `{place}`",)


def test_a_file_that_the_fix_adds_is_told_before_the_names_in_files_of_before() -> None:
    test = "from shop.raffle import draw\nfrom shop.a import blend\n"
    after = {"shop/raffle.py": "def draw(): ...\n", "shop/a.py": "def blend(): ...\n"}
    assert needed(test, after, OLD) == (
        "`shop/raffle.py`",
        "`blend` in `shop/a.py`",
        "`draw` in `shop/raffle.py`",
    )
    assert needed("import blend\n", after, OLD) == ("`blend` in `shop/a.py`",)


def test_a_module_is_told_where_the_fix_adds_it_and_the_tests_begin_to_use_it() -> None:
    fix = {"shop/raffle.py": "def draw(): ...\n"}
    assert needed("import draw\n", fix) == ("`draw` in `shop/raffle.py`",)
    before = {TEST: "import raffle\n"}
    assert needed("import raffle\nimport draw\n", fix, before) == ("`draw` in `shop/raffle.py`",)
    cart = {"shop/cart.py": "def draw(): ...\n"}
    assert needed("from cart import draw\n", cart, {"shop/cart.py": ""}) == ("`draw` in `shop/cart.py`",)


def test_modules_are_told_in_order_of_their_names() -> None:
    fix = {"bb.py": "one = 1\n", "b/aa.py": "two = 2\n"}
    assert needed("from bb import one\nfrom aa import two\n", fix)[:2] == ("`b/aa.py`", "`bb.py`")


def test_no_more_names_than_a_prompt_has_room_for() -> None:
    names = [f"name{n:02}" for n in range(31)]
    after = {"a.py": "".join(f"{name} = 1\n" for name in names)}
    found = needed(f"import {', '.join(names)}\n", after, {"a.py": ""})
    assert found == tuple(f"`{name}` in `a.py`" for name in names[:30])


@pytest.mark.parametrize("extra", [0, 1])
def test_a_file_of_a_million_bytes_is_searched_and_no_larger(extra: int) -> None:
    padding = "." * (999_991 + extra)
    told = ("`draw` in `a.py`",)
    assert needed("import draw\n", {"a.py": "draw = 1\n"}, {"b": f"draw     {padding}"}) == told[:extra]
    assert needed("import draw\n", {"a.py": f"draw = 1\n{padding}"}) == told[: 1 - extra]


@pytest.mark.parametrize("entry", [{"link": "draw.py"}, {"data": b"draw = 1\n\0"}], ids=["link", "binary"])
def test_links_and_binary_files_of_a_fix_define_nothing(entry: dict[str, object]) -> None:
    odd = {"a.py": ArchiveEntry(name="a.py", **entry)}  # type: ignore[arg-type]
    trees = FixTrees(base=tree({"a.py": ""}), hidden=tree({TEST: "import draw\n"}), reference=odd)
    assert needed_names(trees) == ()

"""Code without what a fix changed."""

import pytest

from pytest_tfgrpo.patterns.synthesis.blanked_code import blanked_code, feeds_itself, stem_of


def test_what_a_changed_constant_leads_to_in_several_steps_is_blanked() -> None:
    code = "A = 1\nB = A + 1\nC = B + 1\nD = C + 1\n\ndef last():\n    return D\n"
    fixed = code.replace("A = 1", "A = 2")
    found = blanked_code({"m.py": code.encode()}, {"m.py": fixed.encode()}, ["m.py"], "no")
    assert b"_blank_asked" in found["m.py"].partition(b"def last")[2]


def blanked(before: str, after: str, **others: str) -> dict[str, str]:
    """Return the modules that are blanked by a change of ``m.py``, what each begins with cut off."""
    rest = {f"{name}.py": text.encode() for name, text in others.items()}
    found = blanked_code({"m.py": before.encode(), **rest}, {"m.py": after.encode(), **rest}, ["m.py"], "no")
    return {
        name: data.decode().partition("except Exception:\n        pass\n")[2] for name, data in found.items()
    }


ASKED = "if _blank_asked():"


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("def f():\n    return 1\n", "return _blank_value"),
        ("async def f():\n    return 1\n", "return _blank_value"),
        ("def f():\n    yield 1\n", "yield _blank_value"),
        ("def f():\n    yield from [1]\n", "yield _blank_value"),
        ("def f():\n    g = lambda: (yield)\n    return g\n", "return _blank_value"),
        ("class C:\n    def __init__(self):\n        self.x = 1\n", "return"),
        ("class C:\n    def __post_init__(self):\n        self.x = 1\n", "return"),
        ("class C:\n    def __delattr__(self, n):\n        self.x = 1\n", "return"),
        ("class C:\n    def __setattr__(self, n, v):\n        self.x = 1\n", "return"),
        ("class C:\n    def __set_name__(self, o, n):\n        self.x = 1\n", "return"),
        ("class C:\n    def __init_subclass__(cls):\n        cls.x = 1\n", "return"),
        ("class C:\n    def __del__(self):\n        self.x = 1\n", "return"),
        ("class C:\n    def __call__(self):\n        return 1\n", "return _blank_value"),
    ],
)
def test_a_new_function_answers_with_nothing_as_its_kind_allows(code: str, how: str) -> None:
    rows = blanked("", code)["m.py"].split("\n")
    at = [n for n, row in enumerate(rows) if row.strip() == ASKED]
    assert how in [rows[n + 1].strip() for n in at]


def test_what_did_not_change_stays_as_it_is() -> None:
    before = "def f():\n    return 1\n\n\nclass C:\n    x = 1\n\n    def m(self):\n        return 2\n"
    assert blanked(before, before) == {}
    assert blanked(before, before.replace("return 1", "return  1  # why")) == {}
    assert blanked("def f(:", "def g(:") == {}
    changed = blanked(before, before.replace("return 2", "return 3"))["m.py"]
    assert changed.count(ASKED) == 1
    assert changed.index(ASKED) > changed.index("def m")
    assert "_blank_class(C)" not in changed


@pytest.mark.parametrize(
    "after",
    [
        *("class C(B):\n    x = 1\n", "class C(metaclass=M):\n    x = 1\n", "class C:\n    x = 2\n"),
        "@d\nclass C:\n    x = 1\n",
    ],
)
def test_a_class_whose_head_or_values_changed_is_blanked_where_it_is_made(after: str) -> None:
    assert "_blank_class(C)" in blanked("class C:\n    x = 1\n", after)["m.py"]


def test_what_a_module_begins_with_stays_first_and_users_of_a_changed_value_are_blanked() -> None:
    before = '"""Doc."""\nfrom __future__ import annotations\nLIMIT = 1\n'
    use = "from m import LIMIT as MOST\n\ndef f():\n    return MOST\n\ndef g():\n    return LIMIT\n"
    found = blanked_code(
        {"m.py": before.encode(), "pkg/__init__.py": b""},
        {
            "m.py": before.replace("1", "2").encode(),
            "u.py": use.encode(),
            "v.py": b"def f():\n    return LIMIT\n",
        },
        ["m.py"],
        "yes",
    )
    assert set(found) == {"u.py"}
    assert found["u.py"].decode().partition("def f")[2].count(ASKED) == 1
    told = blanked_code({}, {"m.py": (before + "def f(): ...\n").encode()}, ["m.py"], "none")["m.py"].decode()
    assert told.startswith('"""Doc."""\nfrom __future__ import annotations\nimport sys as _blank_sys\n')
    assert "_blank_value = None\n" in told


@pytest.mark.parametrize(
    ("code", "feeds"),
    [
        ("import m\n\ndef test_a():\n    assert m.f()\n", False),
        ("X = f()\n", True),
        ("@pytest.mark.parametrize('a', [1])\ndef test_a(a): ...\n", False),
        ("@pytest.mark.parametrize('a', f())\ndef test_a(a): ...\n", True),
        ("def pytest_generate_tests(metafunc): ...\n", True),
        ("class T:\n    x = f()\n", True),
        ("def a(x=f()): ...\n", True),
        ("async def a():\n    f()\n", False),
        ("x = lambda: f()\n", False),
        ("def f(:", False),
    ],
)
def test_a_module_that_calls_anything_while_its_tests_are_found_feeds_itself(code: str, feeds: bool) -> None:
    assert feeds_itself(code.encode()) is feeds


@pytest.mark.parametrize(
    ("path", "stem"), [("a/b.py", "b"), ("a/__init__.py", "a"), ("__init__.py", ""), ("c.py", "c")]
)
def test_a_module_is_called_by_its_file_and_a_package_by_its_folder(path: str, stem: str) -> None:
    assert stem_of(path) == stem


def test_what_uses_another_module_under_the_same_name_is_blanked() -> None:
    code = (
        "import json as j\nimport os.path\n\ndef f():\n    return j.dumps(1)\n\ndef g():\n    return os.sep\n"
    )
    assert blanked(code, code.replace("json", "orjson"))["m.py"].partition("def g")[0].count(ASKED) == 1
    assert blanked(code, code.replace("os.path", "os.abc"))["m.py"].partition("def g")[2].count(ASKED) == 1

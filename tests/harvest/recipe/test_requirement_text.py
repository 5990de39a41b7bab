"""Requirements as text: what a lock can hold, and nothing that an installer would take for an option."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.harvest.recipe.requirement_text import (
    beside,
    install_items,
    installed_by,
    is_linter,
    name_of,
    poetry,
    requirement_list,
    requirements_file,
)


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a-b.c",
        "a[x,y]",
        "a>=1",
        "a >= 1, <2",
        "a(>=1)",
        "a==1.*; python_version < '3.8'",
        "a~=1.0",
        "a===x",
    ],
)
def test_requirements_by_name_are_kept(text):
    assert requirement_list([text]).requirements == (text,)


@pytest.mark.parametrize(
    "text",
    [
        "-e x",
        "--index-url http://x",
        "a @ https://x",
        "git+https://x",
        "./a",
        "a b",
        "a --hash=sha256:1",
        "a; x --global-option y",
        "a>=1 --config-settings=x",
        "../a",
        "a>",
        "[x]",
    ],
)
def test_what_no_lock_can_hold_is_named(text):
    found = requirement_list([text])
    assert (found.requirements, found.dropped) == ((), (text,))


pieces = st.sampled_from(
    [
        "a",
        "b-c",
        "[x]",
        ">=1",
        "==2.0",
        " ",
        "\n",
        "; ",
        "python_version < '3'",
        "-r x",
        "--pre",
        "@ https://x",
        "#",
    ]
)


@reaches("a requirement", "dropped")
@given(st.text(max_size=40) | st.lists(pieces, max_size=5).map("".join) | pieces.map("a{}".format))
def test_no_requirement_has_lines_or_is_an_option(text):
    found = requirement_list([text])
    reached("dropped", found.dropped)
    for item in found.requirements:
        reached("a requirement")
        assert not item.startswith("-")
        assert len(item.splitlines()) == 1
        assert "--" not in item.partition(";")[2]
        assert name_of(item)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("^1.2.3", "x>=1.2.3,<2"),
        ("^0.2.3", "x>=0.2.3,<0.3"),
        ("^0.0.3", "x>=0.0.3,<0.0.4"),
        ("~1.2", "x>=1.2,<1.3"),
        ("~1.2.3", "x>=1.2.3,<1.3"),
        ("~1", "x>=1,<2"),
        ("*", "x"),
        ("1.0", "x==1.0"),
        (">=1,<3", "x>=1,<3"),
        ({"version": "1.*", "extras": ["a"]}, "x[a]==1.*"),
        ({"git": "x"}, ""),
        ({"version": "1", "optional": True}, ""),
        ({"version": "1", "python": "~2.7"}, 'x==1; python_version >= "2.7" and python_version < "2.8"'),
        (
            {"version": "1", "python": "<3.4 || 3.6"},
            'x==1; (python_version < "3.4") or (python_version == "3.6")',
        ),
        ({"version": "1", "python": "*"}, "x==1"),
        (
            {"version": "1", "python": ">=3.7", "markers": "os_name == 'posix'"},
            "x==1; (os_name == 'posix') and (python_version >= \"3.7\")",
        ),
        ([{"version": "^1"}, {"version": "^2"}], "x>=2,<3"),
        (3, ""),
    ],
)
def test_poetry_is_translated(value, expected):
    assert poetry("x", value) == expected


def test_the_words_of_an_installation_are_told_apart():
    words = ["-U", "-r", "req.txt", "--index-url", "http://x/y", "a==1", "-e", ".[t]", "-c", "c.txt", "b"]
    words += ["--editable", "./own", "--constraint", "c.txt", "-f", "links", "-t", "there", "d"]
    assert list(install_items(words, {"req.txt": "q\n"}.get)) == ["q", "a==1", ".[t]", "b", "./own", "d"]


def test_files_of_requirements_may_be_named_in_one_word():
    files = {"req.txt": "q\n", "more.txt": "m\n"}.get
    assert list(install_items(["-rreq.txt", "--requirement=more.txt", "--quiet"], files)) == ["q", "m"]
    assert list(install_items(["-i", "-rreq.txt", "b"], files)) == ["b"]


@pytest.mark.parametrize(
    ("line", "items"),
    [
        ("pip install a b==1", ["a", "b==1"]),
        ("sudo pip3 install a && pip install b", ["a"]),
        ("uv pip install 'a>=1'  # why", ["a>=1"]),
        ("RUN pip install a; rm x", ["a"]),
        ("pip download a", []),
        ("mypip install a", []),
        ("pip install 'a", []),
        ("", []),
    ],
)
def test_a_line_of_a_script_installs_what_pip_is_given(line, items):
    assert installed_by(line, {}.get) == items


@pytest.mark.parametrize(
    ("name", "other", "path"),
    [
        ("a/req.txt", "base.txt", "a/base.txt"),
        ("a/b/req.txt", "../base.txt", "a/base.txt"),
        ("a/req.txt", "./x/./y.txt", "a/x/y.txt"),
        ("req.txt", "../base.txt", ""),
        ("a/req.txt", "../../base.txt", ""),
        ("a/req.txt", "/base.txt", ""),
    ],
)
def test_a_file_beside_another_stays_in_the_tree(name, other, path):
    assert beside(name, other) == path


def test_what_checks_formats_and_documents_is_a_linter():
    assert all(
        map(is_linter, ["flake8>=3", "Black", "sphinx_rtd_theme", "mypy; python_version>'3'", "pytest_mypy"])
    )
    assert all(map(is_linter, ["pytest-codestyle", "pytest-flakes", "pytest-pep8>=1"]))
    prefixed = ["flake8-bugbear", "sphinx_issues", "sphinxcontrib.napoleon", "mkdocs-x", "pylint-django"]
    assert all(map(is_linter, [*prefixed, "types-requests", "mypy-extensions", "tox-gh"]))
    assert not any(map(is_linter, ["pytest", "pytest-mock", "hypothesis", "blackjack", "typing-extensions"]))


def test_a_line_of_a_requirements_file_loses_its_remark_its_options_and_its_end():
    text = (
        "a>=1  # why\r\n# alone\r\n-e git+https://host/x#egg=x\r\n--editable=./own\r\n--pre\r\n"
        "b==1 \\\r\n    --hash=sha256:aa\r\nc --config-settings=x=y\r\nd --global-option=z\r\n"
    )
    found = requirements_file("req.txt", {"req.txt": text}.get)
    assert found == ["a>=1", "git+https://host/x#egg=x", "./own", "b==1", "c", "d"]


def test_requirements_files_include_each_other_five_deep_and_beside_themselves():
    files = {f"in/{n}.txt": f"x{n}\n-r {n + 1}.txt\n" for n in range(8)}
    found = requirements_file("in/0.txt", lambda name: files.get(name, ""))
    assert found == [f"x{n}" for n in range(6)]
    assert requirements_file("0.txt", {"0.txt": "--requirement=in/7.txt", **files}.get, 1) == ["x7"]

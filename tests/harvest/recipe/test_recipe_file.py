"""The recipe file: every mistake is named with file, line, key and value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.harvest.recipe.recipe_file import parse_recipes, read_recipes

GOOD = """
# how the tests run
[folder."."]
runner = "pytest"
python = "3.11"

[folder."web/app"]
runner = "command"
run = ["make", "test", "REPORT={report}"]
"""


def test_folders_are_read_and_what_is_left_out_is_none():
    root, web = parse_recipes(GOOD)
    assert (root.folder, root.runner, root.python, root.dependencies) == (".", "pytest", "3.11", None)
    assert (web.folder, web.run) == ("web/app", ("make", "test", "REPORT={report}"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[folder."."]\nrunner = "pytest"\ncolour = "red"', r"harvest.toml:3: .*'colour'"),
        ('[folder."."]\nrunner = "pytst"', r"harvest.toml:2: /folder/\./runner: .*'pytst'"),
        ('[folder."."]\n\n[folder.web]\npython = 3.11', r"harvest.toml:4: /folder/web/python: .*quote it"),
        ('[folder."."]\nenv = {LD_PRELOAD = "x"}', r"harvest.toml:2: .*LD_PRELOAD"),
        (
            '[folder."../x"]\nrunner = "pytest"',
            r"harvest.toml:1: /folder/\.\.~1x: '\.\./x' is not a folder of",
        ),
        ("[folder.'a\\b']", r"harvest.toml:1: .*'a.+b' is not a folder of"),
        ('[folder."/a"]', r"harvest.toml:1: .*'/a' is not a folder of"),
        ('[folder."a//b"]', r"harvest.toml:1: .*'a//b' is not a folder of"),
        (
            '[folder."."]\ndependencies = ["a\\n"]',
            r"harvest.toml:2: .*dependencies/0: 'a.+n' is not a requirement",
        ),
        ('[folder."."]\nrunner = "vitest"\nrun = ["x"]', r"harvest.toml:3: .*'node-test'; remove it"),
        (
            'x = 1\nrunner = "pytest"',
            r"harvest.toml:2: /runner: the key 'runner' belongs below a folder's line",
        ),
        ('[folder."."]\ndependencies = "a"', r'is not of type array; write \["a"\]'),
        ('[folder."."]\nrunner = "command"', r"harvest.toml:2: .*needs a key run .* got None"),
        (
            '[folder."."]\nrunner = "command"\nrun = ["make"]',
            r"harvest.toml:3: .*name \{report\}, got \['make'\]",
        ),
        ('[folder."."]\nrunner = "jest"\nrun = ["x"]', r"harvest.toml:3: .*'node-test'; remove it"),
        (
            '[folder."."]\nrunner = "node-test"\nrun = ["--inspect"]',
            r"harvest.toml:3: .*'--inspect' is no flag",
        ),
        (
            '[folder."."]\ndependencies = ["a", "-r x"]',
            r"harvest.toml:2: /folder/\./dependencies/1: '-r x' is no",
        ),
        (
            '[folder."."]\nsetup = ["make"]',
            r"harvest.toml:2: /folder/\./setup/0: 'make' is not of type array",
        ),
        ('folder = {"." = {runner = 1}}', r"harvest.toml:1: "),
        ("[folder", r"harvest.toml: not TOML: .*; correct it"),
        ("", r"harvest.toml:1: .*'folder'"),
        ("[folders.x]", r"harvest.toml:1: .*'folders'"),
    ],
)
def test_a_mistake_is_named_with_its_line(text, message):
    with pytest.raises(SettingError, match=message):
        parse_recipes(text)


def test_a_file_that_is_missing_or_no_text_is_refused(tmp_path):
    with pytest.raises(SettingError, match="cannot read the recipe"):
        read_recipes(tmp_path / "harvest.toml")
    (tmp_path / "harvest.toml").write_bytes(b"\xff")
    with pytest.raises(SettingError, match="cannot read the recipe"):
        read_recipes(tmp_path / "harvest.toml")


@given(st.text())
def test_no_text_breaks_the_reader(text):
    with pytest.raises(SettingError):
        parse_recipes(text)


def test_folders_come_in_order_and_a_mistake_is_looked_for_in_its_own():
    text = '[folder."web"]\nrunner = "jest"\n[folder."api"]\nrunner = "pytest"\n[folder.".".env]\nA = "1"\n'
    assert [recipe.folder for recipe in parse_recipes(text)] == [".", "api", "web"]
    assert parse_recipes(text)[0].env == {"A": "1"}
    with pytest.raises(SettingError, match=r"recipes:6: /folder/\./env/A: "):
        parse_recipes(text.replace('"1"', "1"), "recipes")

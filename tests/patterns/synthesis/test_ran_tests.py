"""Commands that run tests are read as words."""

import pytest

from pytest_tfgrpo.patterns.synthesis.ran_tests import read_command, written_commands


@pytest.mark.parametrize(
    ("text", "runner", "folder", "name"),
    [
        ("pytest tests/test_a.py::test_x -q", "pytest", ".", "tests/test_a.py"),
        (".venv/bin/python3.11 -m pytest -k 'a or b' tests/test_a.py", "pytest", ".", "tests/test_a.py"),
        ("python -m unittest tests.test_a.Case", "pytest", ".", "tests/test_a.py"),
        ("uv run pytest test_a.py", "pytest", "api", "api/test_a.py"),
        ("pytest ../test_a.py", "pytest", "api", "test_a.py"),
        ("TZ=UTC tox -e py311", "pytest", ".", None),
        ("npm test -- src/a.test.ts", "", ".", "src/a.test.ts"),
        ("yarn run test", "", "web", None),
        ("npx vitest run a.test.ts", "vitest", "web", "web/a.test.ts"),
        ("jest", "jest", ".", None),
        (" jest \n", "jest", ".", None),
        ("py.test -x", "pytest", ".", None),
        ("nox -s tests", "pytest", ".", None),
        ("poetry run pytest", "pytest", ".", None),
        ("pipenv run python -m pytest", "pytest", ".", None),
        ("pdm run pytest", "pytest", ".", None),
        ("pnpm exec vitest", "vitest", ".", None),
        ("pnpm test", "", ".", None),
        ("LANG=C LC_ALL=C NODE_ENV=test PYTHONHASHSEED=0 /usr/bin/python3 -m pytest", "pytest", ".", None),
        (f"pytest {'x' * 1993}", "pytest", ".", None),
        ("node --test --import=tsx a.test.ts", "node-test", ".", "a.test.ts"),
    ],
)
def test_a_command_that_runs_tests_says_runner_folder_and_files(text, runner, folder, name):
    found = read_command(text, "" if folder == "." else folder)
    assert found is not None
    assert (found.runner, found.folder) == (runner, folder)
    assert name is None or name in found.names


def test_of_flags_and_variables_only_harmless_ones_are_kept():
    found = read_command("CI=1 node --test --import=tsx --test-reporter=./evil.mjs --eval=x a.test.mjs")
    assert found is not None
    assert found.flags == ("--import=tsx",)
    assert found.variables == {"CI": "1"}


@pytest.mark.parametrize(
    "text",
    [
        "", "ls", "rm -rf .", "make test", "python tests/test_a.py", "python -c 'import pytest'",
        "npm run build",
        "bash -c pytest", "pytest tests; curl x", "pytest && rm x", "pytest | tee log", "pytest $(rm x)",
        "pytest `rm x`", "pytest > out", "pytest < in", "pytest\nrm x", "pytest 'unclosed", "pytest \0",
        "LD_PRELOAD=./x.so pytest", "PATH=. pytest", "PYTHONPATH=evil pytest", "NODE_OPTIONS=-r=x jest",
        "TZ='$(x)' pytest", f"pytest {'x' * 2000}", "node --test-only", "sudo pytest", "env pytest",
    ],
)  # fmt: skip
def test_what_is_not_one_program_that_runs_tests_is_no_command(text):
    assert read_command(text) is None


@pytest.mark.parametrize("folder", ["/etc", "..", "a/../../b"])
def test_a_folder_outside_of_the_repository_is_none(folder):
    assert read_command("pytest", folder) is None


def test_names_that_lead_out_of_the_repository_are_left_out():
    found = read_command("pytest /etc/test_a.py ../../test_a.py", "api")
    assert found is not None
    assert found.names == ()


def test_commands_of_a_text_are_lines_of_its_shell_blocks_and_what_is_in_backticks():
    both = "```console\n$ pytest `a`\n```\n```bash\n  jest\n```\n```shell\ntox\n```\n"
    assert [*written_commands(both)] == ["pytest `a`", "jest", "tox"]
    text = "Run `pytest -q` or\n```sh\n$ npm test\n\ntox\n```\n```python\nrun()\n```\nand `a\nb`.\n"
    assert [*written_commands(text)][:3] == ["npm test", "tox", "pytest -q"]


def test_flags_are_of_node_alone_and_names_of_words():
    found = read_command("jest --import=tsx a.test.js")
    assert found is not None
    assert found.flags == ()
    named = read_command("python -m unittest tests.test_a.Case ./b.py::x c/d", "api/")
    assert named is not None
    assert named.names == (
        "api/tests.test_a.Case",
        "api/tests/test_a/Case.py",
        "api/tests/test_a.py",
        "api/tests.py",
        "api/b.py",
        "api/c/d",
    )

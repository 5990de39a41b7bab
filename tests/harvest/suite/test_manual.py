"""What a person is told of a change that could not be run."""

from dataclasses import replace

import pytest
from support.harvests import make_recipe, make_validation
from support.project_trees import candidate

from pytest_tfgrpo.harvest.recipe.recipe_file import parse_recipes
from pytest_tfgrpo.harvest.suite.manual import manual_advice, partial_value
from pytest_tfgrpo.harvest.suite.provenance import FixOrigin
from pytest_tfgrpo.scoring.runners.protocol import SuiteCommand


@pytest.mark.parametrize(
    ("test", "runner", "named", "runs"),
    [
        ("tests/test_a.py", None, "pytest, or command", ("make", "test", "REPORT={report}")),
        ("tests/test_a.py", "pytest", "pytest, or command", None),
        ("test/a.ts", None, "node-test, vitest, jest, or command", ("npx", "mocha")),
        ("test/a.js", "jest", "node-test, vitest, jest, or command", None),
        ("test/a.mjs", None, "node-test, vitest, jest, or command", ("npx", "mocha")),
        ("test/a.tsx", None, "node-test, vitest, jest, or command", ("npx", "mocha")),
    ],
)
def test_the_advice_names_the_runners_of_its_language_and_can_be_used_as_it_is(test, runner, named, runs):
    change = replace(candidate(test), protected=(test, "package.json"))
    part = None if runner is None else make_recipe(command=SuiteCommand(runner=runner))
    text = manual_advice(change, part, make_validation(reason="no runner"), FixOrigin())
    (recipe,) = parse_recipes(text.partition("```toml\n")[2].partition("```")[0])
    assert recipe.runner == (runner or "command")
    assert f"# {named}\n" in text
    assert (recipe.run or ())[: len(runs or ())] == (runs or ())
    assert ("npm" in text) is (test != "tests/test_a.py")


def test_the_advice_is_of_python_where_one_test_is_and_of_the_folder_of_the_recipe():
    change = candidate("web/test/a.ts", "web/tests/test_a.py")
    part = make_recipe(folder='web "a"', command=SuiteCommand(runner="pytest"))
    text = manual_advice(change, part, make_validation(reason="no runner"), FixOrigin())
    (recipe,) = parse_recipes(text.partition("```toml\n")[2].partition("```")[0])
    assert recipe.folder == 'web "a"'
    assert "# pytest, or command\n" in text


def test_the_advice_for_a_captured_fix_names_its_job():
    origin = FixOrigin(source="capture", job="j-7")
    text = manual_advice(candidate("tests/test_a.py"), None, make_validation(reason="x"), origin)
    assert "Say in a file such as `harvest.toml` how" in text
    assert "`tfgrpo learn requeue j-7 --scenario FILE --approver YOU --reason TEXT`" in text
    assert "--retry" not in text


def test_the_advice_says_why_and_lists_what_changed_and_what_is_known_stands_beside_it():
    change = replace(
        candidate("tests/test_a.py"), protected=("tests/test_a.py", "tests/data.txt"), sources=()
    )
    validation = make_validation(reason="no `runner`")
    text = manual_advice(change, None, validation, FixOrigin())
    assert f"Commit `{change.change.commit}` changes tests" in text
    assert "could not be run: no 'runner'." in text
    assert "Changed files with tests:\n\n* `tests/test_a.py`\n\nChanged sources:\n\n* none\n" in text
    value = partial_value(change, None, validation, "shop")
    assert (value["id"], value["domain"], value["reason"]) == (change.id, "shop", "no `runner`")
    assert (value["commit"], value["base"]) == (change.change.commit, change.change.base)
    assert (value["tests"], value["sources"], value["recipe"]) == (list(change.tests), [], None)
    assert value["protected"] == ["tests/test_a.py", "tests/data.txt"]
    assert (value["message"], [run["tree"] for run in value["runs"]]) == ("fix", ["fix"])
    known = partial_value(change, make_recipe(folder="web"), validation, "shop")["recipe"]
    assert known["folder"] == "web"
    long = manual_advice(change, None, replace(validation, reason="x" * 9000), FixOrigin())
    assert "x" * 501 not in long
    untested = replace(change, tests=())
    assert "* `tests/data.txt`" in manual_advice(untested, None, validation, FixOrigin())

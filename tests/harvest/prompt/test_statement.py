"""The prompt of a scenario: where it comes from, what is cut from it, which names it lists."""

from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.harvest.fixes import FixCandidate, FixValidation, HistoryChange, Statement
from pytest_tfgrpo.harvest.prompt import issues_file
from pytest_tfgrpo.harvest.prompt.issues_file import fixed_issues, read_issues
from pytest_tfgrpo.harvest.prompt.statement import TASK, statement_of
from pytest_tfgrpo.harvest.proof.fix_trees import FixTrees
from pytest_tfgrpo.sandbox.archives import ArchiveEntry

LONG = "Prices with thousands separators ended in an error, although suppliers write them in their lists."
BEFORE = "def parse(text):\n    whole = int(text)\n    return whole * 100\n"
AFTER = "def parse(text):\n    whole = int(text.replace(',', ''))\n    return whole * 100\n"


def entries(files: dict[str, str]) -> dict[str, ArchiveEntry]:
    return {name: ArchiveEntry(name=name, data=text.encode()) for name, text in files.items()}


def trees(**more: dict[str, str]) -> FixTrees:
    parts = {
        "base": {"shop/money.py": BEFORE, "tests/test_money.py": "from shop.money import parse\n"},
        "hidden": {"tests/test_money.py": "from shop.money import parse\n\ndef test_x(): parse('1,0')\n"},
        "reference": {"shop/money.py": AFTER},
    }
    return FixTrees(**{name: entries(files) for name, files in (parts | more).items()})


def change_of(message: str, merged: tuple[str, ...] | None = None) -> HistoryChange:
    return HistoryChange(
        commit="c" * 40,
        base="b" * 40,
        tree="",
        base_tree="",
        committed_at=0,
        message=message,
        is_merge=merged is not None,
        merged=merged or (),
    )


def prompt(
    message: str, made: FixTrees | None = None, merged: tuple[str, ...] | None = None, **options: Any
) -> Statement:
    change = change_of(message, merged)
    candidate = FixCandidate(id="x", change=change, tests=(), protected=(), sources=())
    validation = FixValidation(
        fail_to_pass=("tests/test_money.py::test_x",),
        pass_to_pass=(),
        messages={"tests/test_money.py::test_x": "ValueError: invalid literal for int()"},
    )
    return statement_of(candidate, made or trees(), validation, **options)


def test_a_message_that_says_something_is_the_prompt() -> None:
    found = prompt(f"Read prices (#12)\n\n{LONG}\n\nCo-authored-by: Ada <ada@b.c>\n")
    assert found == Statement(text=f"Read prices\n\n{LONG}\n\n{TASK}", source="commit message")


def test_an_issue_that_the_message_fixes_comes_first() -> None:
    found = prompt(f"{LONG}\n\nFixes #7", issues={7: f"The issue. {LONG}"})
    assert (found.source, found.text.startswith("The issue. ")) == ("issue 7", True)
    assert prompt(f"{LONG}\n\nFixes #8", issues={7: "x"}).source == "commit message"
    assert prompt(f"{LONG}\n\nFixes #7", issues={7: "It fails."}).source == "commit message"


def test_a_brief_issue_stands_above_the_failing_tests_where_the_message_is_brief_too() -> None:
    found = prompt("Fix prices, fixes #7", issues={7: "1,234 is no price\n\nIt fails."})
    assert found.source == "issue 7, failing tests"
    assert found.text.startswith(
        "1,234 is no price\n\nIt fails.\n\nThese tests fail:\n\n- tests/test_money.py::test_x"
    )


@pytest.mark.parametrize(
    ("body", "start"),
    [("\n\nMake imports faster\n", "Make imports faster\n\nThese tests"), ("", "These tests")],
)
def test_the_subject_of_a_merge_is_no_task(body: str, start: str) -> None:
    found = prompt(f"Merge pull request #534 from ada/faster-import{body}", merged=())
    assert found.source == "failing tests"
    assert found.text.startswith(f"{start} fail:\n\n- tests/test_money.py::test_x")


@pytest.mark.parametrize(
    "subject",
    [
        "Merge pull request #534 from ada/faster-import",
        "Merge branch 'main' of host.example:ada/shop into develop",
        "Merge remote-tracking branch 'ada/main'",
        "Merge tag 'v1'",
        "Merge stable into main.  (#3674)",
        "Merge upstream/main",
        "Merged in ada/faster-import (pull request #534)",
        "Merge",
    ],
)
def test_a_merge_says_its_body_and_what_was_merged(subject: str) -> None:
    merged = (
        "test: show how slow it is\n\nImports took seconds, as `shop` loads everything.\n\nSigned-off-by: A",
        "Make imports faster (#534)\n",
        "fixup! Make imports faster",
        f"Load nothing early\n\nImports took seconds, as `shop` loads everything.\n\n\n{LONG}",
    )
    found = prompt(f"{subject}\n\nMake imports faster\n\nCo-authored-by: A <a@b.c>", merged=merged)
    assert found == Statement(
        text="Make imports faster\n\ntest: show how slow it is\n\nImports took seconds, as `shop` loads "
        f"everything.\n\nLoad nothing early\n\n{LONG}\n\n{TASK}",
        source="commit message",
    )


def test_a_merge_that_says_little_stands_above_the_failing_tests() -> None:
    found = prompt("Merge branch 'side'", merged=("Read prices\n\nNow.", "Lint"))
    assert found.text.startswith("Read prices\n\nThese tests fail:")


def test_what_was_merged_is_cut_as_any_text_and_names_the_issues_that_it_fixes() -> None:
    merged = (f"{LONG}\n\n    whole = int(text.replace(',', ''))", f"{'long ' * 4000}\n\nFixes #7")
    found = prompt("Merge branch 'side'", merged=merged)
    assert found.cut == ("whole = int(text.replace(',', ''))",)
    assert "replace" not in found.text
    assert len(found.text) < 8200
    assert prompt("Merge x", merged=merged, issues={7: f"The issue. {LONG}"}).source == "issue 7"


def test_a_message_that_says_too_little_gives_way_to_the_failing_tests() -> None:
    found = prompt("Fix prices\n")
    assert found.source == "failing tests"
    assert found.text.startswith(
        "Fix prices\n\nThese tests fail:\n\n"
        "- tests/test_money.py::test_x: ValueError: invalid literal for int()\n\n"
    )


@pytest.mark.parametrize(
    ("message", "numbers"),
    [
        ("Fixes #12", (12,)),
        ("This closes #1, #2 and #3.", (1, 2, 3)),
        ("resolves: team/project#9", (9,)),
        ("Fixed https://tracker.example/team/project/issues/44", (44,)),
        ("fix gh-5", (5,)),
        ("Fixes #1. Closes #2, #1.", (1, 2)),
        ("See #12; prefixes #4", ()),
        ("Fix the thing (#12)", ()),
    ],
)
def test_which_issues_a_message_fixes(message: str, numbers: tuple[int, ...]) -> None:
    assert fixed_issues(message) == numbers


def test_links_to_the_change_are_cut() -> None:
    found = prompt(f"{LONG}\nSee https://host.example/a/b/pull/12 and https://docs.example/prices for it.")
    assert "pull/12" not in found.text
    assert "https://docs.example/prices" in found.text


# Leaks


@pytest.mark.parametrize(
    "leak",
    [
        pytest.param("    whole = int(text.replace(',', ''))", id="the-line"),
        pytest.param("+ whole=int( text.replace(',','') )", id="as-a-difference"),
        pytest.param("> Just write whole = int(text.replace(',', '')) there", id="in-a-sentence"),
        pytest.param("Use `text.replace(',', '')` first.", id="a-part-of-it"),
        pytest.param("whole = int(text\n    .replace(',', ''))", id="broken-in-two"),
    ],
)
def test_lines_of_the_fix_are_cut(leak: str) -> None:
    found = prompt(f"{LONG}\n\n{leak}\n\nThe end.")
    assert found.text == f"{LONG}\n\nThe end.\n\n{TASK}"
    assert found.cut


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("It fails in `return whole * 100`, I think.", id="a-line-that-stays"),
        pytest.param("`parse('1,000')` ends with a ValueError.", id="a-call"),
        pytest.param("    whole = int(text)", id="the-faulty-line"),
    ],
)
def test_what_the_code_had_before_is_no_leak(text: str) -> None:
    found = prompt(f"{LONG}\n\n{text}")
    assert text in found.text
    assert found.cut == ()


def test_a_text_that_is_nothing_but_the_fix_gives_way_and_is_remembered() -> None:
    found = prompt("whole = int(text.replace(',', ''))  # the commas of thousands separate digits in texts")
    assert found.source == "failing tests"
    assert found.cut
    assert "replace" not in found.text


# Names


def test_names_that_the_tests_need_and_nothing_has_are_listed() -> None:
    made = trees(
        hidden={
            "tests/test_money.py": "from shop.money import parse, parse_many\nfrom shop.tax import rate\n\n"
            "def test_x():\n    local_name = parse_many('x', strict_mode=True)\n"
            "    assert local_name.grand_total\n"
            "    assert rate() and 'quoted_name'  # spoken_of\n"
        },
        reference={
            "shop/money.py": AFTER + "\ndef parse_many(texts, strict_mode=False):\n    local_name = 1\n"
            "    self.grand_total = 2\n    quoted_name = spoken_of = unused_name = 3\n",
            "shop/tax.py": "def rate():\n    return 1\n",
        },
    )
    assert prompt(LONG, made).text.endswith(
        f"{TASK}\n\nThose tests use names that are not there yet: `shop/tax.py`, "
        "`grand_total` in `shop/money.py`, "
        "`parse_many` in `shop/money.py`, `rate` in `shop/tax.py`, `strict_mode` in `shop/money.py`."
    )


def test_names_that_some_file_has_before_are_not_listed() -> None:
    made = trees(
        base={"shop/money.py": BEFORE, "shop/other.py": "def parse_many(): ..."},
        hidden={"tests/test_money.py": "from shop.money import parse_many"},
        reference={"shop/money.py": AFTER + "def parse_many(): ..."},
    )
    assert prompt(LONG, made).text.endswith(TASK)


# A model


def test_a_model_may_rewrite_the_text_but_not_leak() -> None:
    seen: list[tuple[str, tuple[str, ...]]] = []

    def rewrite(text: str, tests: tuple[str, ...]) -> str:
        seen.append((text, tests))
        return f"Rewritten. {LONG}\nwhole = int(text.replace(',', ''))"

    found = prompt(LONG, rewrite=rewrite)
    assert found.text == f"Rewritten. {LONG}\n\n{TASK}"
    assert found.source == "model"
    assert found.cut
    assert seen == [(LONG, ("- tests/test_money.py::test_x: ValueError: invalid literal for int()",))]


@pytest.mark.parametrize("answer", [None, "", "Fix it."])
def test_a_model_that_says_nothing_changes_nothing(answer: str | None) -> None:
    assert prompt(LONG, rewrite=lambda text, tests: answer) == prompt(LONG)


# The file of issues


def test_issues_are_read_with_other_keys_and_without_hidden_comments(tmp_path: Path) -> None:
    path = tmp_path / "issues.jsonl"
    path.write_text(
        '{"number": 3, "title": "T", "body": "<!-- template -->B\\r\\nC", "labels": []}\n\n'
        '{"number": 4, "title": "Only", "body": null}\n'
        '{"number": 5, "title": "T", "body": "B<!-- never closed"}\n'
    )
    assert read_issues(path) == {3: "T\n\nB\nC", 4: "Only", 5: "T\n\nB"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]\n", r":1: number is None"),
        ('{"number": 1}\n{', r":2: not JSON"),
        ('{"number": true}', r":1: number is True"),
        ('{"number": 1, "body": 5}', r":1: body is 5"),
        ('{"number": 1, "title": []}', r":1: title is \[\]; it must be a text"),
        ('\n{"number": 1}\n\n{"number": "2"}', r":4: number is '2'; write"),
        ('{"number": 1}\n{"number": false}', r":2: number is False"),
        ("[" * 100_000, r":1: not JSON"),
    ],
)
def test_a_bad_file_of_issues_is_a_usage_error(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "issues.jsonl"
    path.write_text(text)
    with pytest.raises(SettingError, match=why):
        read_issues(path)
    with pytest.raises(SettingError, match="cannot read the issues"):
        read_issues(tmp_path / "absent.jsonl")


def test_a_file_of_issues_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "issues.jsonl"
    path.write_text('{"number": 1}\n{"number": 1, "title": "Last"}')
    monkeypatch.setattr(issues_file, "FILE_MAX", path.stat().st_size)
    assert read_issues(path) == {1: "Last"}
    monkeypatch.setattr(issues_file, "FILE_MAX", path.stat().st_size - 1)
    with pytest.raises(SettingError, match=r"has over \d+ bytes; export only the issues of these commits"):
        read_issues(path)


EIGHT = "Alpha bravo charlie delta foxtrot golf hotel india"


def test_a_text_of_eight_words_says_something() -> None:
    assert prompt(EIGHT).source == "commit message"
    assert prompt(EIGHT.rpartition(" ")[0]).source == "failing tests"
    assert prompt("Fixes #7", issues={7: EIGHT}).source == "issue 7"
    assert prompt("Fixes #7", issues={7: " \n"}).source == "failing tests"
    assert prompt(LONG, rewrite=lambda *_: EIGHT).source == "model"
    assert prompt(LONG, rewrite=lambda *_: EIGHT.rpartition(" ")[0]).source == "commit message"


def test_twenty_failing_tests_are_named_and_what_they_say_has_no_secret_and_one_line() -> None:
    change = FixCandidate(id="x", change=change_of("Fix"), tests=(), protected=(), sources=())
    secret = "sk-proj-" + "a1B2c3D4" * 4

    def told(count: int, said: str) -> list[str]:
        ids = tuple(f"t{n}" for n in range(count))
        found = FixValidation(fail_to_pass=ids, pass_to_pass=(), messages={"t0": said})
        return (
            statement_of(change, trees(), found)
            .text.partition("fail:\n\n")[2]
            .partition("\n\n")[0]
            .split("\n")
        )

    assert told(20, "") == [f"- t{n}" for n in range(20)]
    assert told(23, "")[19:] == ["- t19", "- and 3 more"]
    (long,) = told(1, "x" * 280 + f" {secret}")
    assert "sk-proj" not in long
    assert len(long) < 320
    assert told(1, "one\ntwo") == ["- t0: one two"]

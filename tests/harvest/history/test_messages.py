"""What the message of a change says, and by what title its scenario is called."""

import pytest

from pytest_tfgrpo.harvest.fixes import HistoryChange
from pytest_tfgrpo.harvest.history.candidates import scenario_id
from pytest_tfgrpo.harvest.history.messages import change_text, message_text, title_of

NAMES = ("ada", "bob", "faster-import", "acme")
"""People and branches in the messages below."""
FORMS = [
    "Merge pull request #534 from ada/faster-import",
    "Merge pull request #534 in SHOP/shop from ~ADA/shop:faster-import to main",
    "Merge branch 'ada-faster-import' into 'main'",
    "Merge branch 'main' of host.example:ada/shop into develop",
    "Merge branches 'ada' and 'bob'",
    "Merge remote-tracking branch 'ada/main'",
    "Merge https://host.example/ada/shop into main",
    "Merge commit 'ada/main'",
    "Merged in ada/faster-import (pull request #534)",
    "Merging ada/faster-import into main",
    "Merge with ada",
    "Auto merge of #534 - ada:faster-import, r=bob",
    "Rollup merge of #534 - ada:faster-import, r=bob",
]


def change(message: str, merged: tuple[str, ...] | None = ()) -> HistoryChange:
    """Return a merge with a message; `merged` None: no merge."""
    return HistoryChange(
        commit="c" * 40, base="b" * 40, tree="", base_tree="", committed_at=0, message=message,
        is_merge=merged is not None, merged=merged or (),
    )  # fmt: skip


@pytest.mark.parametrize("subject", FORMS)
@pytest.mark.parametrize(
    ("body", "merged", "title"),
    [
        ("\n\nMake imports faster\n\nApproved-by: Ada", ("Lint",), "Make imports faster"),
        ("\r\n\r\nMake imports faster (#534)\r\n", (), "Make imports faster (#534)"),
        ("\n\n534: Make imports faster r=bob a=ada\n\nMore", (), "Make imports faster"),
        ("\n\nMerge in SHOP/shop from ~ADA/shop:faster-import to main\n\nImport less", (), "Import less"),
        ("\n\n* ada-faster-import:\n  Import less\n", (), "Import less"),
        ("", ("Make imports faster (by @ada)\n\nNow.", "Lint"), "Make imports faster"),
        ("", (), None),
    ],
    ids=["body", "crlf", "bot", "request", "listed", "merged", "nothing"],
)
def test_a_merge_is_called_by_what_it_says_or_its_number(
    subject: str, body: str, merged: tuple[str, ...], title: str | None
) -> None:
    expected = title if title is not None else "merge 534" if "#534" in subject else "merge"
    assert title_of(change(subject + body, merged)) == expected


@pytest.mark.parametrize(
    ("message", "start"),
    [
        ("Merged PR 534: Make imports faster", "make-imports-faster-"),
        ("Pull request #534: Make imports faster\n\nMerge in SHOP/shop from ADA/x to main", "make-imports-"),
        ("Merge #534: Make imports faster", "merge-534-make-imports-faster-"),
        ('Merge "Make imports faster" into stable', "merge-make-imports-faster-into-stable-"),
        ("Merge of ada/faster-import: imports", "merge-of-imports-"),
        ("Merge changes from topic 'ada-faster-import' into main", "merge-changes-from-topic-into-main-"),
        ("Make imports faster (#534)", "make-imports-faster-534-"),
        ("Merge branch 'ada'", "merge-ccc"),
        ("Merge branch 'ada' (!534)", "merge-534-ccc"),
        ("", "merge-ccc"),
    ],
)
def test_the_id_of_a_merge_names_no_branch(message: str, start: str) -> None:
    found = scenario_id(change(message))
    assert found.startswith(start)
    assert not [name for name in NAMES if name in found]


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("Merge pull request #534 from ada/faster-import\n\nMake imports faster", "Make imports faster"),
        ("Merged in ada/faster-import (pull request #534)\n\nMake imports faster", "Make imports faster"),
        ("Merged in ada/faster-import (pull request #534)", "merge 534"),
        ("", ""),
        ("Merge cells in order", "Merge cells in order"),
        ("Read a/b and 'c' (#3)", "Read a/b and 'c' (#3)"),
    ],
)
def test_a_squashed_request_is_called_by_its_title_too(message: str, title: str) -> None:
    assert title_of(change(message, None)) == title


def test_what_a_prompt_says_of_a_merge_names_nobody_either() -> None:
    for subject in FORMS:
        said = change_text(change(f"{subject}\n\n534: Make imports faster r=bob\n\nThey are slow."))
        assert said == "Make imports faster\n\nThey are slow."
    assert message_text("Pull request #534: Read prices\n\nMerge in A/b from ~ADA/x to main") == "Read prices"


def test_a_long_message_is_not_read_to_its_end() -> None:
    assert title_of(change("Merge branch 'x'\n\n" + "\n" * 5_000 + "Far away", ("A\n" * 9_000,))) == "A"


def test_a_merge_with_a_subject_of_its_own_says_it() -> None:
    assert change_text(change("Read prices with separators (#3)\n", ("Read prices with separators",))) == (
        "Read prices with separators (#3)"
    )


def test_what_git_writes_into_a_merge_is_no_part_of_what_it_says() -> None:
    message = (
        "Merge branch 'side'\n\n* ada-side: (3 commits)\n  Read prices\n\nConflicts:\n\tshop/money.py\n"
        "\n# Conflicts:\n#\tshop/money.py\n"
    )
    assert change_text(change(message, ("Read prices",))) == "Read prices"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Thanks to @ada and @bob for the hint.", "Thanks to a user for the hint."),
        ("Read prices (by @ada)", "Read prices"),
        ("Thanks @ada, @bob, and @eve!", "Thanks a user!"),
        ("Kudos to @ada, credit to @bob", "Kudos to a user, credit to a user"),
        (
            "Patch by @ada. Found by @bob. Fixed by @eve. Suggested by @al. cc @ed",
            "Patch by a user. Found by a user. Fixed by a user. Suggested by a user. cc a user",
        ),
        ("According to @ada and @bob it is slow", "According to a user it is slow"),
        ("Reported by: @ada-l, it failed", "Reported by: a user, it failed"),
        ("Ask Ada <ada@b.c> about it", "Ask Ada about it"),
        ("Allow the decorator by @property and @ada", "Allow the decorator by @property and @ada"),
    ],
)
def test_users_are_not_named(text: str, left: str) -> None:
    assert message_text(text) == left


def test_a_message_loses_what_says_nothing_of_the_fault() -> None:
    message = (
        "Merge pull request #3 from a/b\n\nKeep it: this stays\n\n* a point\n\nSigned-off-by: A\n"
        "Reviewed-by: B\nCloses: #3\n(cherry picked from commit 0123abc)\n"
    )
    assert message_text(message) == "Keep it: this stays\n\n* a point"


@pytest.mark.parametrize(
    "trailer",
    [
        *("Acked-by: B", "Co-authored-by: B <b@c.d>", "Cc: b@c.d", "Change-Id: I0123", "Author: B"),
        *("Bug: 12", "Bug-Url: https://b.c/12", "Ref: #3", "Refs: #3", "Closes : #3", "Fixes: #3"),
        *(
            "Resolves: #3",
            "PR-URL: https://b.c/3",
            "Issue: 3",
            "Ticket: 3",
            "git-svn-id: x@3",
            "Thanks-to: B",
        ),
        *("PR #3.", "fixup! Read prices", "squash! Read prices", "See merge request a/b!3"),
        *("amend! Read prices", "Generated with [a tool](https://b.c)"),
        *("\u2728 Generated by [a tool](https://b.c)", "PR #3", "closes: #3", "Suggested-by: B"),
    ],
)
def test_a_trailer_is_no_part_of_what_a_message_says(trailer: str) -> None:
    assert message_text(f"Read prices\n\nThey differ.\n\n{trailer}\n") == "Read prices\n\nThey differ."


@pytest.mark.parametrize("again", ["- fix DATES.", "+ Fix dates", "* Fix dates", "Fix dates"])
def test_what_is_said_again_in_a_list_or_another_case_is_said_once(again: str) -> None:
    assert change_text(change("Merge branch 'x'", ("Fix dates", f"Lint\n{again}"))) == "Fix dates\n\nLint"


def test_the_id_of_a_change_has_40_characters_of_its_title_at_most_and_ends_with_no_dash_of_it() -> None:
    assert scenario_id(change("a" * 39 + " bc", None)) == "a" * 39 + "-" + "c" * 12
    assert scenario_id(change("a" * 38 + " bc", None)) == "a" * 38 + "-b-" + "c" * 12


@pytest.mark.parametrize("number", ["(#7)", "(gh-7)", "(GH-7)", "(a/b#7)"])
def test_what_is_said_again_with_the_number_of_a_request_is_said_once(number: str) -> None:
    assert change_text(change("Merge branch 'x'", ("Fix dates", f"Fix dates {number}"))) == "Fix dates"


def test_what_several_merged_changes_say_is_said_once() -> None:
    merged = ("Fix dates\n\nSay it once.", "Lint\n\n* Fix dates (#7)", "Say it once\n\nLint", "Lint")
    assert change_text(change("Merge branch 'ada'", merged)) == "Fix dates\n\nSay it once.\n\nLint"

"""Which changes are worth validating, and why the others are not."""

from pathlib import Path
from typing import Any

import pytest
from support.repositories import Repository, git, remove_object

from pytest_tfgrpo.harvest.fixes import (
    ChangedFile,
    FixCandidate,
    HarvestRow,
    HarvestStatus,
    HistoryChange,
    RootCause,
)
from pytest_tfgrpo.harvest.history.candidates import CandidateRules, candidates, few_lines, is_code
from pytest_tfgrpo.harvest.history.changes import changes, merged_changes, range_of
from pytest_tfgrpo.harvest.history.git_objects import GitObjects

SOURCE, TEST = "shop/cart.py", "tests/test_cart.py"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "project")
    made.commit({SOURCE: "a\n", TEST: "a\n", "README.md": "a\n"}, "Begin")
    return made


def screened(repository: Repository, rules: CandidateRules | None = None) -> list[FixCandidate | HarvestRow]:
    """Return what becomes of each change but the first, oldest first."""
    with GitObjects(repository.folder) as objects:
        found = list(candidates(changes(objects, range_of(objects, "main")), rules))[-2::-1]
        return [few_lines(objects, one) if isinstance(one, FixCandidate) else one for one in found]


def only(repository: Repository, rules: CandidateRules | None = None) -> FixCandidate | HarvestRow:
    (one,) = screened(repository, rules)
    return one


def candidate(repository: Repository, rules: CandidateRules | None = None) -> FixCandidate:
    one = only(repository, rules)
    assert isinstance(one, FixCandidate), one
    return one


def reason(repository: Repository, rules: CandidateRules | None = None) -> str:
    one = only(repository, rules)
    assert isinstance(one, HarvestRow), one
    return one.reason


def test_a_change_of_tests_and_sources_is_a_candidate(repository: Repository) -> None:
    commit = repository.commit(
        {SOURCE: "b\n", TEST: "b\n", "tests/data.txt": "x", "README.md": "b\n", "pyproject.toml": ""},
        "Count every item, not every second (#12)\n\nBody",
    )
    one = candidate(repository)
    assert one.id == f"count-every-item-not-every-second-12-{commit[:12]}"
    assert one.tests == (TEST,)
    assert one.protected == ("pyproject.toml", "tests/data.txt", TEST)
    assert one.sources == ("README.md", SOURCE)


def test_data_of_tests_counts_as_a_test(repository: Repository) -> None:
    repository.commit({SOURCE: "b\n", "tests/fixtures/carts.txt": "x"})
    assert candidate(repository).tests == ()


@pytest.mark.parametrize(
    ("files", "why"),
    [
        pytest.param({SOURCE: "b\n"}, "no test changed", id="no-test"),
        pytest.param(
            {"checks/m_checks.py": "b\n", SOURCE: "b\n"},
            "no test changed; if checks/m_checks.py holds tests, set tests in harvest.toml",
            id="tests-by-another-name",
        ),
        pytest.param({SOURCE: "b\n", TEST: None}, "no test changed", id="a-test-deleted"),
        pytest.param({TEST: "b\n"}, "no source changed", id="no-source"),
        pytest.param(
            {TEST: "b\n", "README.md": "b", "docs/a.py": "b"}, "no source changed", id="documentation"
        ),
        pytest.param({TEST: "b\n", "uv.lock": "b", ".ci/x": "b"}, "no source changed", id="services"),
        pytest.param(
            {
                TEST: "b\n",
                "requirements.txt": "b",
                "x/dev-requirements_3.in": "b",
                "requirements/ci.txt": "b",
            },
            "no source changed",
            id="packages",
        ),
        pytest.param({SOURCE: "b\n" * 1200, TEST: "b\n"}, "over 1000 lines", id="large"),
        pytest.param({"shop/huge.py": "x" * 1_000_001, TEST: "b\n"}, "over 1000 lines", id="huge-file"),
        pytest.param({f"s{n}.py": "" for n in range(16)} | {TEST: "b"}, "16 source files", id="many"),
        pytest.param({SOURCE: "b\n", TEST: "b", "a\nb": "x"}, r"the name 'a\\nb'", id="odd-name"),
        pytest.param({SOURCE: "b\n", TEST: "b", b"\xff": "x"}, "which no archive", id="no-utf8"),
    ],
)
def test_what_is_no_candidate_says_why(repository: Repository, files: dict[str, str], why: str) -> None:
    repository.commit(files)  # type: ignore[arg-type]
    assert why.replace("\\\\", "\\") in reason(repository)


def test_a_submodule_that_changes_or_goes_is_no_candidate(repository: Repository) -> None:
    repository.commit({SOURCE: "b", TEST: "b", "sub": "1" * 40}, modes={"sub": "160000"})
    repository.commit({SOURCE: "c", TEST: "c", "sub": None})
    rows = screened(repository)
    assert [row.reason for row in rows if isinstance(row, HarvestRow)] == ["it changes a submodule"] * 2


def test_moved_lines_and_pictures_are_not_counted(repository: Repository) -> None:
    numbers = [f"{n}\n" for n in range(1200)]
    repository.commit({SOURCE: "".join(numbers)})
    repository.commit({SOURCE: "".join(numbers[600:] + numbers[:600]), TEST: "b", "logo.bin": b"\0" * 50_000})
    assert isinstance(screened(repository)[-1], FixCandidate)


def test_exactly_a_thousand_lines_are_few_enough(repository: Repository) -> None:
    repository.commit({SOURCE: "".join(f"{n}\n" for n in range(999)), TEST: "b"}, "1000")
    repository.commit({SOURCE: "".join(f"{n}\n" for n in range(2000)), TEST: "c"}, "1001")
    few, many = screened(repository)
    assert isinstance(few, FixCandidate)
    assert isinstance(many, HarvestRow)


def changed(*paths: str, **more: Any) -> HistoryChange:
    """Return a change of files whose contents nobody reads."""
    modes = {"old_mode": "100644", "new_mode": "100644"}
    files = [ChangedFile(path=p, status="modified", old_id="1", new_id="2", **modes) for p in paths]
    given = {"commit": "c" * 40, "base": "b" * 40, "tree": "", "base_tree": "", "message": "Change"}
    return HistoryChange(**{**given, "committed_at": 7, "files": tuple(files), **more})


def test_exactly_15_sources_are_few_enough_and_documentation_is_none() -> None:
    names = [TEST, *(f"s{n}.py" for n in range(15)), *(f"docs/{n}.txt" for n in range(9))]
    found = [*candidates([changed(*names), changed(*names, "one-more.py")])]
    assert [isinstance(one, FixCandidate) for one in found] == [True, False]


def test_a_change_that_is_none_keeps_its_time() -> None:
    (row,) = candidates([changed(SOURCE)])
    assert isinstance(row, HarvestRow)
    assert (row.commit, row.committed_at) == ("c" * 40, 7)


@pytest.mark.parametrize("path", ["Checks/cart.py", "shop/testing.py", "shop/SPECS_cart.py", "x/unittest.py"])
def test_a_file_whose_name_speaks_of_tests_is_named(path: str) -> None:
    (row,) = candidates([changed(SOURCE, path)])
    assert isinstance(row, HarvestRow)
    assert row.reason == f"no test changed; if {path} holds tests, set tests in harvest.toml"


def test_data_in_a_folder_of_tests_in_whatever_case_counts_as_a_test() -> None:
    (one,) = candidates([changed(SOURCE, "Tests/carts.txt")])
    assert isinstance(one, FixCandidate)
    assert one.protected == ("Tests/carts.txt",)


def test_lines_of_tests_and_documentation_are_not_counted(repository: Repository) -> None:
    long = "b\n" * 1200
    repository.commit({SOURCE: "b\n", TEST: long, "tests/data.txt": long, "README.md": long, "docs/x": long})
    assert candidate(repository).sources == ("README.md", "docs/x", SOURCE)


@pytest.mark.parametrize(
    "path",
    [
        *("newsfragments/12.feature", "a/changelog.d/x.py", "changes/1.x", "NEWS/1", "DOCS/conf.py", "doc/a"),
        *("documentation/a.py", ".github/x.py", "a.md", "A.MD", "a.mdx", "a.rst", "a.adoc", "a.asciidoc"),
        *("a.po", "a.pot", "a.png", "a.jpg", "a.jpeg", "a.gif", "a.svg", "a.ico", "a.webp", "a.pdf"),
        *("a.woff", "a.woff2", "a.ttf", "a.js.map", "a.lock", "a.min.js", "a.min.css", ".gitignore"),
        *("AUTHORS", "CHANGES", "changelog.txt", "contributing.txt", "CONTRIBUTORS", "COPYING", "HISTORY"),
        *("LICENSE", "LICENCE", "a/license.txt", "NEWS", "NOTICE", "README", "THANKS.txt", "TODO", "VERSION"),
        *(
            "pnpm-lock.yaml",
            "poetry-lock.toml",
            "requirements.txt",
            "constraints.txt",
            "x/dev-constraints.in",
        ),
        *("requirements_dev.txt", "requirements/ci.txt"),
    ],
)
def test_documentation_pictures_and_lists_of_packages_are_no_code(path: str) -> None:
    assert not is_code(path)


@pytest.mark.parametrize(
    "path",
    ["a.js", "a.css", "docs.py", "version.py", "license.c", "constraints.py", "requirements/x.py", "a.json"],
)
def test_what_is_called_alike_is_code(path: str) -> None:
    assert is_code(path)


# Reverts


def both(repository: Repository, message: str, **files: str) -> list[str]:
    repository.commit({SOURCE: files.get("source", "a\n"), TEST: "a\n"}, message)
    return [one.reason if isinstance(one, HarvestRow) else "" for one in screened(repository)]


def test_a_change_that_a_later_one_reverts_by_id_goes_with_it(repository: Repository) -> None:
    fix = repository.commit({SOURCE: "b\n", TEST: "b\n"}, "Fix")
    reasons = both(repository, f'Revert "Fix"\n\nThis reverts commit {fix}.', source="a\nmerged\n")
    assert reasons[0].startswith("it is reverted by ")
    assert reasons[1] == "it reverts another change"


def test_a_change_that_a_later_one_reverts_by_its_subject_goes_with_it(repository: Repository) -> None:
    repository.commit({SOURCE: "b\n", TEST: "b\n"}, "Fix it (#7)")
    reasons = both(repository, 'Revert "Fix it (#7)" (#8)', source="a\nmerged\n")
    assert reasons[0].startswith("it is reverted by ")
    assert reasons[1] == "it reverts another change"


def test_a_change_that_a_later_one_undoes_without_a_word_is_reverted(repository: Repository) -> None:
    repository.commit({SOURCE: "b\n", TEST: "b\n"}, "Fix")
    assert both(repository, "Make it better")[0].startswith("it is reverted by ")


def test_what_is_reverted_and_applied_again_stays(repository: Repository) -> None:
    fix = repository.commit({SOURCE: "b\n", TEST: "b\n"}, "Fix")
    revert = repository.commit({SOURCE: "a\nx\n", TEST: "a\n"}, f"This reverts commit {fix}.")
    repository.commit({SOURCE: "b\ny\n", TEST: "b\n"}, f"This reverts commit {revert}.")
    first, second, third = screened(repository)
    assert isinstance(first, FixCandidate)
    assert isinstance(second, HarvestRow)
    assert isinstance(third, HarvestRow)


# Merges


def merge(repository: Repository, *commits: tuple[dict[str, str], str]) -> str:
    """Merge a branch with commits, each given by its files and message; return the merge."""
    first = tip = git(repository.folder, "rev-parse", "main")
    for files, message in commits:
        tip = repository.commit(files, message, branch="side", parents=[tip])
    changed = {name: text for files, _ in commits for name, text in files.items()}
    return repository.commit(changed, "Merge branch 'side'", parents=[first, tip])


def merged(repository: Repository, **options: object) -> list[FixCandidate | HarvestRow]:
    """Return what becomes of each change but the first, with merges taken apart, oldest first."""
    with GitObjects(repository.folder) as objects:
        found = changes(objects, range_of(objects, "main~1..main"), **options)  # type: ignore[arg-type]
        return list(candidates(found, None, lambda one: merged_changes(objects, one)))[::-1]


def test_several_fixes_of_a_merge_are_taken_instead_of_it(repository: Repository) -> None:
    commit = merge(
        repository,
        ({SOURCE: "b\n", TEST: "b\n"}, "One"),
        ({"README.md": "b\n"}, "Explain"),
        ({SOURCE: "c\n", TEST: "c\n"}, "Two"),
    )
    one, two, row = merged(repository)
    assert isinstance(one, FixCandidate)
    assert isinstance(two, FixCandidate)
    assert isinstance(row, HarvestRow)
    assert [fix.change.message for fix in (one, two)] == ["One", "Two"]
    assert two.change.base == git(repository.folder, "rev-parse", "side~1")
    assert (row.commit, row.status) == (commit, HarvestStatus.SKIPPED)
    assert row.reason == (
        "it merges 2 commits that are fixes themselves, which are taken instead: "
        f"{one.change.commit[:12]}, {two.change.commit[:12]}"
    )


def test_a_merge_of_one_fix_stays_and_keeps_what_its_commits_say(repository: Repository) -> None:
    merge(
        repository,
        ({TEST: "b\n"}, "Show the fault"),
        ({SOURCE: "b\n"}, "Mend it\n\n" + "x" * 9000),
        ({SOURCE: "c\n", TEST: "c\n"}, "Mend more"),
    )
    (one,) = merged(repository)
    assert isinstance(one, FixCandidate)
    assert [text[:14] for text in one.change.merged] == ["Show the fault", "Mend it\n\nxxxxx", "Mend more"]
    assert len(one.change.merged[1]) == 8000


def test_of_a_long_merge_the_oldest_messages_are_kept() -> None:
    brought = [changed(message=f"c{n}") for n in range(60)][::-1]
    (one,) = candidates([changed(SOURCE, TEST, is_merge=True)], None, lambda _: brought)
    assert isinstance(one, FixCandidate)
    assert one.change.merged == tuple(f"c{n}" for n in range(50))


def test_what_is_merged_into_the_branch_or_undone_in_it_is_no_fix_of_it(repository: Repository) -> None:
    first = git(repository.folder, "rev-parse", "main")
    fix = {SOURCE: "b\n", TEST: "b\n"}
    one = repository.commit(fix, "One", branch="side", parents=[first])
    main = repository.commit({"other.py": "b\n", "tests/test_other.py": "b\n"}, "Elsewhere")
    back = repository.commit(
        {"other.py": "b\n", "tests/test_other.py": "b\n"}, "Merge main", branch="side", parents=[one, main]
    )
    wrong = repository.commit({SOURCE: "x\n", TEST: "x\n"}, "Wrong", branch="side", parents=[back])
    undo = f"This reverts commit {wrong}."
    undone = repository.commit(fix, undo, branch="side", parents=[wrong])
    repository.commit(fix, "Merge branch 'side'", parents=[main, undone])
    (kept,) = merged(repository)
    assert isinstance(kept, FixCandidate)
    assert kept.change.merged == ("One", "Wrong", undo)


def test_a_merge_of_too_many_sources_is_taken_apart_and_skipped_where_that_gives_nothing(
    repository: Repository,
) -> None:
    large = {f"s{n}.py": "" for n in range(16)}
    merge(repository, (large, "Large"), ({TEST: "b\n"}, "Tests"))
    (row,) = merged(repository)
    assert isinstance(row, HarvestRow)
    assert row.reason == "16 source files changed, more than 15"
    merge(repository, ({SOURCE: "b\n", TEST: "c\n"}, "One"), ({**large, TEST: "d\n"}, "Two"),
          ({"s1.py": "x", TEST: "e\n"}, "Three"))  # fmt: skip
    assert [one.change.message for one in merged(repository) if isinstance(one, FixCandidate)] == [
        "One",
        "Three",
    ]


# Rules


def test_globs_say_what_else_is_a_test_and_what_is_protected(repository: Repository) -> None:
    repository.commit({SOURCE: "b\n", "checks/cart_check.py": "x", "checks/data.txt": "x"})
    rules = CandidateRules(tests=("checks/*_check.py",), protected=("checks/**",))
    one = candidate(repository, rules)
    assert one.tests == ("checks/cart_check.py",)
    assert one.protected == ("checks/cart_check.py", "checks/data.txt")


def test_the_folder_of_the_suite_belongs_to_no_change(repository: Repository) -> None:
    repository.commit({SOURCE: "b\n", "suite/references/tests/test_x.py": "x"})
    assert reason(repository, CandidateRules(left_out=("suite",))) == "no test changed"


def test_a_source_that_is_missing_is_a_failed_validation(repository: Repository) -> None:
    repository.commit({SOURCE: "b\n", TEST: "b\n"})
    remove_object(repository, f"main:{SOURCE}")
    one = only(repository)
    assert isinstance(one, HarvestRow)
    assert one.cause is RootCause.SNAPSHOT_INTEGRITY
    assert "is missing" in one.reason


def test_a_deleted_file_is_not_said_to_hold_tests(repository: Repository) -> None:
    repository.commit({SOURCE: "b\n", "shop/x_checks.py": "b\n", TEST: "b\n"})
    repository.commit({SOURCE: "c\n", "shop/x_checks.py": None})
    row = screened(repository)[-1]
    assert isinstance(row, HarvestRow)
    assert row.reason == "no test changed"


def test_what_globs_name_as_tests_comes_from_the_fix(repository: Repository) -> None:
    repository.commit({SOURCE: "b\n", "checks/cart_check.py": "x", TEST: "b\n"})
    one = candidate(repository, CandidateRules(tests=("checks/*_check.py",)))
    assert one.tests == ("checks/cart_check.py",)
    assert one.protected == ("checks/cart_check.py", TEST)
    assert one.sources == (SOURCE,)


def test_a_change_without_tests_is_a_candidate_where_others_may_prove_it(repository: Repository) -> None:
    commit = repository.commit({SOURCE: "b\n"}, "!!!")
    one = candidate(repository, CandidateRules(untested=True))
    assert (one.id, one.tests, one.protected) == (f"change-{commit[:12]}", (), ())
    repository.commit({"README.md": "b\n"})
    row = screened(repository, CandidateRules(untested=True))[-1]
    assert isinstance(row, HarvestRow)
    assert row.reason == "no source changed"

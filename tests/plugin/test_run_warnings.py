"""Warnings of a run are pytest's: shown once, ignored or made errors by its filters, and never lost."""

import pytest
from support.project import Project

TEXT = "no train scenario is selected: nothing can be learned"


@pytest.fixture
def warned(project: Project) -> Project:
    """A project whose run has one warning."""
    return project.scenarios(train=0, sweep=2).ini(actor="python:agent:right", baseline_sweep="off")


def lines_with(text: str, result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if text in line]


def test_pytest_shows_and_counts_them(warned: Project) -> None:
    result = warned.learn()
    assert (result.ret, result.parseoutcomes()["warnings"]) == (0, 1)
    assert lines_with(TEXT, result) == [f"  {warned.root / 'pytest.ini'}:0: TfgrpoWarning: {TEXT}"]
    assert warned.report()["warnings"] == [TEXT]


@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        (("-W", "ignore::pytest_tfgrpo.TfgrpoWarning"), []),
        (("-W", "ignore::pytest.PytestWarning"), []),
        (("--disable-warnings",), [f"warning: {TEXT}"]),
        (("-p", "no:warnings"), [f"warning: {TEXT}"]),
    ],
)
def test_who_ignores_them_sees_none_and_who_turns_pytests_off_sees_them_in_the_section(
    warned: Project, flags: tuple[str, ...], shown: list[str]
) -> None:
    result = warned.learn(*flags)
    assert result.ret == 0
    assert lines_with(TEXT, result) == shown


@pytest.mark.parametrize("category", ["error", "error::pytest_tfgrpo.TfgrpoWarning"])
def test_as_errors_they_fail_pytest_after_the_run_has_ended(warned: Project, category: str) -> None:
    result = warned.learn("-W", category)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes() == {"passed": 3, "errors": 1}
    assert len(lines_with(f"ERROR pytest.ini - TfgrpoWarning: {TEXT[:40]}", result)) == 1
    assert warned.manifest()["status"] == "complete"
    said = " ".join(" ".join(result.outlines).split())
    assert f"warning: {TEXT} tfgrpo: -W or filterwarnings makes an error of 1 warning" in said
    assert "to allow it: -W default::pytest_tfgrpo.TfgrpoWarning" in said


def test_a_filter_of_the_project_can_allow_them_again(warned: Project) -> None:
    ini = warned.root / "pytest.ini"
    ini.write_text(ini.read_text() + "filterwarnings =\n  error\n  default::pytest_tfgrpo.TfgrpoWarning\n")
    assert warned.learn().ret == 0

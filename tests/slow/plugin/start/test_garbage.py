"""Python's garbage collector during a session of scenarios."""

import gc
from collections.abc import Iterator

import pytest
from support.project import Project

COUNT = """
import gc

def pytest_sessionfinish(session):
    session.config.add_cleanup(lambda: print(f"spared to the end: {gc.get_freeze_count()}"))

def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"spared: {gc.get_freeze_count()}")
"""


@pytest.fixture
def project(project: Project) -> Iterator[Project]:
    """A project in a process that has frozen nothing."""
    gc.unfreeze()
    yield project.scenarios().conftest(COUNT)
    gc.freeze()


def run(project: Project) -> pytest.RunResult:
    """Run pytest as anybody does: `Project.run` leaves out what finds all frozen."""
    return project.pytester.runpytest_inprocess("-p", "no:cacheprovider")


def test_collections_pass_over_what_lasts_where_scenarios_run_alone(project: Project) -> None:
    run(project).stdout.re_match_lines([r"spared: \d{5,}", r"spared to the end: \d{5,}"])


def test_the_collector_of_a_session_with_other_tests_is_left_alone(project: Project) -> None:
    run(project.write("test_mine.py", "def test_mine(): pass")).stdout.fnmatch_lines(["spared: 0"])


def test_all_is_traced_again_after_a_session_in_a_process_that_goes_on(project: Project) -> None:
    run(project)
    assert gc.get_freeze_count() == 0


def test_what_a_process_froze_itself_stays_frozen(project: Project) -> None:
    gc.freeze()
    before = gc.get_freeze_count()
    run(project)
    assert 0 < gc.get_freeze_count() <= before


def test_collections_are_as_frequent_as_before_after_a_session(project: Project) -> None:
    before = gc.get_threshold()
    run(project)
    assert gc.get_threshold() == before

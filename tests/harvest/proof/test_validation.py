"""Validation: three runs of each tree, and what of a test's outcomes proves a fix."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.harvests import FakeTests
from support.reached import reached, reaches

from pytest_tfgrpo.harvest.fixes import FixValidation, RootCause, ValidationRun
from pytest_tfgrpo.harvest.proof.proven_changes import ROUNDS
from pytest_tfgrpo.harvest.proof.validation import check_timeout_s
from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment
from pytest_tfgrpo.scoring.runners.protocol import RunProblem

X, Y = "tests/test_a.py::test_x", "tests/test_a.py::test_y"
OTHER = "tests/test_b.py::test_z"
MODULE = "tests.test_a.TestA::test_x"
"""As the report of a command may name it."""


@pytest.fixture
def fake(tmp_path):
    return FakeTests(tmp_path)


def test_a_test_that_failed_thrice_and_passed_thrice_proves_the_fix(fake):
    found = fake.validate(base={Y: "p"}, base_with_tests={X: "f", Y: "p"}, fix={X: "p", Y: "p"})
    assert (found.fail_to_pass, found.pass_to_pass) == ((X,), (Y,))
    assert found.cause is None
    assert [run.tree for run in found.runs] == ["fix", "base_with_tests", "base"] * 3
    assert len({id(request.compiled) for request in fake.requests} - {id(None)}) == 1
    assert (found.runs[1].passed, found.runs[1].failed) == (1, 1)
    assert found.messages == {X: "because of f"}


def test_the_first_run_before_the_fix_says_why_a_test_failed(fake):
    found = fake.validate(base_with_tests={X: "fhh"}, fix={X: "p"})
    assert found.messages == {X: "because of f"}


BUILT = BuiltEnvironment(
    stamp="e" * 64,
    folder=Path("e"),
    python=None,
    programs=(),
    imports=(),
    variables={},
    links={},
    readable=(),
)


def test_all_runs_are_as_the_plan_says_and_so_is_what_is_found(fake):
    fake.test = ASSERTS
    fake.plan = {
        "environment": BUILT,
        "isolation": "none",
        "protected": ("gone.*",),
        "timeout_s": 70.0,
        "relaxed": True,
    }
    found = fake.validate(base_with_tests={X: "f", Y: "p"}, fix={X: "p", Y: "p"}, changed={X: "f", Y: "p"})
    assert (found.isolation, found.relaxed, found.environment) == ("none", True, "e" * 64)
    assert len(fake.requests) > 9
    for request in fake.requests:
        assert (request.isolation, request.environment, request.timeout_s) == ("none", BUILT, 70.0)
        assert request.hang_s <= 70.0
    assert {request.protected for request in fake.requests} == {
        ("gone.py", "tests/test_a.py", "tests/test_b.py"), ("tests/test_a.py", "tests/test_b.py")
    }  # fmt: skip


@pytest.mark.parametrize(("other", "ran"), [(b"b", 1), (b"from test_a import f", 2)])
def test_a_wavering_file_of_tests_that_uses_another_runs_where_that_one_is_changed(fake, other, ran):
    fake.test, fake.other = ASSERTS, other
    found = fake.validate(
        base_with_tests={X: "f", OTHER: "p"}, fix={X: "p", OTHER: "pfp"}, changed={X: "f", OTHER: "p"}
    )
    assert found.wavering == (OTHER,)
    assert fake.requests[-1].files == ("tests/test_a.py", "tests/test_b.py")[:ran]


ASSERTS = b"def test_x():\n    assert f() == '12345 23456 34567 45678'\n\n\ndef test_y(): f()\n"


@pytest.mark.parametrize(
    ("ends", "kept", "runs"),
    [("f", 3, 4), ("pf", 3, 5), ("fffp", 0, 4), ("fffs", 0, 4)],
)
def test_changes_of_tests_are_proven_by_runs_after_the_fix(fake, ends, kept, runs):
    fake.test = ASSERTS
    found = fake.validate(
        base_with_tests={X: "f", Y: "p"}, fix={X: "p", Y: "p"}, changed={X: ends.ljust(12, ends[-1]), Y: "p"}
    )
    assert (found.fail_to_pass, found.pass_to_pass) == ((X,), (Y,))
    assert [change.fails for change in found.changes] == [(X,)] * kept
    assert len(fake.requests) == 9 + runs


def test_what_the_fix_uses_where_a_test_expects_something_else_is_allowed_too(fake):
    """Hypothesis, for one, traces the code only of a test that fails."""
    fake.test = ASSERTS
    fake.uses = {"base_with_tests": ("native",), "fix": ("ctypes",), "changed": ("tracing",)}
    found = fake.validate(base_with_tests={X: "f", Y: "p"}, fix={X: "p", Y: "p"}, changed={X: "f", Y: "p"})
    assert found.uses == ("ctypes", "tracing")


@pytest.mark.parametrize(("seconds", "hang_s"), [(0.5, 5.0), (2.0, 10.0)])
def test_a_test_that_hangs_where_it_expects_something_else_is_waited_for_a_short_time(fake, seconds, hang_s):
    fake.test = ASSERTS
    found = fake.validate(base_with_tests={X: "f"}, fix={X: "p"}, changed={X: "h"}, seconds=seconds)
    assert found.changes == ()
    assert [request.hang_s for request in fake.requests[8:10]] == [30.0, hang_s]


@pytest.mark.parametrize("end", "ps")
def test_a_test_that_passes_or_is_skipped_whatever_it_expects_has_no_changes(fake, end):
    fake.test = ASSERTS
    found = fake.validate(base_with_tests={X: "f", Y: "p"}, fix={X: "p", Y: "p"}, changed={X: end, Y: "p"})
    assert (found.changes, found.unchanged()) == ((), (X,))
    assert 9 + 4 < len(fake.requests) <= 9 + ROUNDS
    assert replace(found, changes=None).unchanged() == ()


def test_a_test_beside_which_another_fails_where_it_is_changed_is_left_as_it_is(fake):
    fake.test = ASSERTS
    found = fake.validate(
        base_with_tests={X: "f", Y: "p"}, fix={X: "p", Y: "p"}, changed={X: "f", Y: "pppffffff"}
    )
    assert found.changes == ()
    assert found.unchanged() == (X,)


def test_a_file_of_which_no_test_passes_is_left_out_as_no_check_runs_it(fake):
    found = fake.validate(base_with_tests={X: "f"}, fix={X: "p", OTHER: "sps"})
    assert (found.fail_to_pass, found.pass_to_pass, found.wavering) == ((X,), (), ())


def test_after_one_round_the_files_of_the_fixs_tests_run_alone_but_once(fake):
    found = fake.validate(base_with_tests={X: "f", OTHER: "p"}, fix={X: "p", OTHER: "p"})
    assert (found.fail_to_pass, found.pass_to_pass) == ((X,), (OTHER,))
    both, one = ("tests/test_a.py", "tests/test_b.py"), ("tests/test_a.py",)
    assert [request.files for request in fake.requests] == [both, both, one, both] + [one] * 5
    wavers = fake.validate(base_with_tests={X: "f", OTHER: "p"}, fix={X: "p", OTHER: "pfp"})
    assert (wavers.pass_to_pass, wavers.wavering) == ((), (OTHER,))


def test_a_file_of_which_the_fixs_tests_are_not_found_before_it_runs_on_the_base_too(fake):
    found = fake.validate(base_with_tests={X: "f"}, fix={X: "p", OTHER: "p"}, base={OTHER: "p"})
    assert (found.fail_to_pass, found.pass_to_pass) == ((X,), (OTHER,))
    assert fake.requests[2].files == ("tests/test_a.py", "tests/test_b.py")


def test_a_report_that_names_no_files_leaves_none_out(fake):
    found = fake.validate(base_with_tests={"a.B::x": "f"}, fix={"a.B::x": "p", OTHER: "sps"})
    assert (found.fail_to_pass, found.wavering) == (("a.B::x",), (OTHER,))


def test_each_run_has_its_tree(fake):
    fake.validate(base={Y: "p"}, base_with_tests={X: "f", Y: "p"}, fix={X: "p", Y: "p"})
    assert fake.trees["base"] == {
        "a.py": b"wrong",
        "gone.py": b"",
        "tests/test_a.py": b"old",
        "tests/test_b.py": b"b",
    }
    assert fake.trees["base_with_tests"] == {
        "a.py": b"wrong",
        "gone.py": b"",
        "tests/test_a.py": b"new",
        "tests/test_b.py": b"b",
    }
    assert fake.trees["fix"] == {"a.py": b"right", "tests/test_a.py": b"new", "tests/test_b.py": b"b"}


def test_a_test_that_hangs_before_the_fix_fails_alone(fake):
    found = fake.validate(base_with_tests={X: "h", Y: "p"}, fix={X: "p", Y: "p"}, seconds=0.5)
    assert (found.fail_to_pass, found.pass_to_pass) == ((X,), (Y,))
    assert found.runs[1].hung == 1
    assert [request.hang_s for request in fake.requests[:2]] == [180.0, 30.0]


def test_a_test_may_take_5_times_as_long_as_after_the_fix(fake):
    fake.validate(base_with_tests={X: "f"}, fix={X: "p"}, seconds=20.0)
    assert fake.requests[1].hang_s == 100.0


def test_a_test_that_is_not_found_before_the_fix_failed_there(fake):
    found = fake.validate(base_with_tests={"tests/test_a.py": "f"}, fix={X: "p", Y: "p"})
    assert found.fail_to_pass == (X, Y)


def test_a_test_that_is_skipped_proves_nothing(fake):
    found = fake.validate(base_with_tests={X: "s", Y: "f"}, fix={X: "p", Y: "p", OTHER: "s"})
    assert (found.fail_to_pass, found.pass_to_pass) == ((Y,), ())


@pytest.mark.parametrize("tree", ["base", "base_with_tests", "fix"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_test_that_wavers_is_in_neither_list_and_named(fake, tree, place):
    ends = {"base": "ppp", "base_with_tests": "fff", "fix": "ppp"}
    ends[tree] = "".join({"f": "p", "p": "f"}[end] if i == place else end for i, end in enumerate(ends[tree]))
    given = {name: {X: ends[name], Y: "f" if name == "base_with_tests" else "p"} for name in ends}
    found = fake.validate(**given)
    assert (found.fail_to_pass, found.pass_to_pass, found.wavering) == ((Y,), (), (X,))


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ({X: "p"}, {X: "p"}, "passes before the fix: no test of it fails there"),
        ({X: "f"}, {X: "f"}, f"fails after the fix: {X} (because of f)"),
        ({X: "f"}, {X: "s"}, f"skipped after the fix: {X} (because of s)"),
        (
            {X: "s", Y: "p"},
            {X: "s", Y: "p"},
            f"1 new test skipped after the fix, no other proves it: {X} (because of s)",
        ),
        (
            {X: "p", Y: "p"},
            {X: "p", OTHER: "s"},
            "passes before the fix: no test of it fails there",
        ),
        ({X: "f"}, {"": "f"}, "fails after the fix: pytest itself (because of f)"),
        ({X: "fpf"}, {X: "p"}, f"flaky: {X}"),
        ({X: "f"}, {X: "ppf"}, f"flaky: {X}"),
        ({}, {OTHER: "f"}, "its tests are not among those that ran"),
        ({MODULE: "p"}, {MODULE: "p"}, "passes before the fix: no test of it fails there"),
        ({MODULE: "f"}, {MODULE: "f"}, f"fails after the fix: {MODULE} (because of f)"),
        ({}, {"tests.test_ab::test_x": "f"}, "its tests are not among those that ran"),
    ],
)
def test_a_change_that_proves_nothing_is_told_why(fake, before, after, reason):
    found = fake.validate(base_with_tests=before, fix=after)
    assert (found.cause, found.reason) == (RootCause.TEST_FAILURE, reason)
    assert found.fail_to_pass == ()


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        (
            "ModuleNotFoundError: No module named 'x'",
            "; declare it as dependencies, or make it by setup, in ",
        ),
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution", "; tests have no network"),
        ("Error: Cannot find package 'tsx'", "; install it by setup, in harvest.toml"),
        ("Error: Cannot find module './x'", "; install it by setup, in harvest.toml"),
        ("ImportError: x.so: undefined symbol: y", "; declare it as dependencies"),
        ("PackageNotFoundError: x", "; declare it as dependencies"),
        ("fixture 'mocker' not found", "; declare it as dependencies"),
        ("Max retries exceeded with url: /x", "; tests have no network"),
        ("OSError: [Errno 101] Network is unreachable", "; tests have no network"),
        ("ConnectionRefusedError: [Errno 111]", "; tests have no network"),
        ("URLError: x", "; tests have no network"),
        ("AssertionError", ""),
    ],
)
def test_what_a_test_says_after_the_fix_comes_with_what_to_do(fake, said, hint):
    fake.says = said
    found = fake.validate(base_with_tests={X: "f"}, fix={X: "f"})
    assert found.reason.startswith(f"fails after the fix: {X} ({said}{hint}")


@pytest.mark.parametrize(
    ("before", "after", "said", "lacking"),
    [
        ({X: "s", Y: "p"}, {X: "s", Y: "p"}, "", True),
        ({X: "p"}, {X: "p"}, "", False),
        ({X: "f"}, {X: "f"}, "No module named 'x'", True),
        ({X: "f"}, {X: "f"}, "fixture 'mocker' not found", True),
        ({X: "f"}, {X: "f"}, "cannot import name '_c'", True),
        ({X: "f"}, {X: "f"}, "x.so: undefined symbol: y", True),
        ({X: "f"}, {X: "f"}, "PackageNotFoundError: x", True),
        ({X: "f"}, {X: "f"}, "error: unrecognized arguments: --cov", True),
        ({X: "f"}, {X: "f"}, "error: unrecognized arguments: --show-capture=no", False),
        ({X: "f"}, {X: "f"}, "cannot import name 'A' (most likely due to a circular import)", False),
        ({X: "f"}, {X: "f"}, "assert 1 == 2", False),
        ({X: "f"}, {X: "p", Y: "s"}, "", False),
    ],
)
def test_tests_that_are_skipped_or_lack_a_module_lack_something(fake, before, after, said, lacking):
    fake.says = said
    assert fake.validate(base_with_tests=before, fix=after).lacking is lacking


@pytest.mark.parametrize(
    ("detail", "reason", "lacking"),
    [
        (
            "Traceback:\nModuleNotFoundError: No module named 'x'",
            "ModuleNotFoundError: No module named 'x'",
            True,
        ),
        (
            "usage: pytest\npytest: error: unrecognized arguments: --cov\n  rootdir: /x",
            "pytest: error: unrecognized arguments: --cov",
            True,
        ),
        ("it said why", "it said why", False),
    ],
)
def test_a_run_without_report_that_lacks_a_module_or_a_plugin_says_so(fake, detail, reason, lacking):
    fake.detail = detail
    found = fake.validate(problems={"fix": RunProblem.NO_REPORT})
    assert (found.reason, found.lacking) == (f"no report after the fix: {reason}", lacking)


def test_old_tests_that_are_skipped_where_none_proves_the_fix_are_counted(fake):
    fake.says = "yield tests are ignored"
    found = fake.validate(base={X: "s", Y: "p"}, base_with_tests={X: "s", Y: "p"}, fix={X: "s", Y: "p"})
    assert found.reason == (
        f"passes before the fix: no test of it fails there; 1 test skipped: {X} (yield tests are ignored)"
    )


def test_a_change_whose_tests_pass_before_takes_one_round(fake):
    assert len(fake.validate(base_with_tests={X: "p"}, fix={X: "p"}).runs) == 3


@pytest.mark.parametrize(
    ("problem", "cause", "reason"),
    [
        (RunProblem.NO_RUNNER, RootCause.SCENARIO_SYNTHESIS, "no runner after the fix: it said why"),
        (RunProblem.NO_REPORT, RootCause.SCENARIO_SYNTHESIS, "no report after the fix: it said why"),
        (RunProblem.NOTHING_COLLECTED, RootCause.ENVIRONMENT, "nothing collected after the fix: it said why"),
        (RunProblem.TIMEOUT, RootCause.ENVIRONMENT, "out of time after the fix: it said why"),
    ],
)
def test_a_run_without_results_ends_the_validation(fake, problem, cause, reason):
    found = fake.validate(fix={X: "p"}, problems={"fix": problem})
    assert (found.cause, found.reason, len(found.runs)) == (cause, reason, 1)
    assert found.runs[0].problem == problem.value


def test_a_base_that_ends_its_runner_proves_nothing(fake):
    found = fake.validate(fix={X: "p"}, problems={"base_with_tests": RunProblem.NO_REPORT})
    assert (found.cause, found.reason) == (
        RootCause.SCENARIO_SYNTHESIS,
        "no report before the fix: it said why",
    )


def test_a_base_on_which_nothing_is_found_fails_all(fake):
    problems = {"base_with_tests": RunProblem.NOTHING_COLLECTED, "base": RunProblem.NOTHING_COLLECTED}
    assert fake.validate(fix={X: "p"}, problems=problems).fail_to_pass == (X,)


@pytest.mark.parametrize("before", [{}, {"tests/test_a.py": "f"}])
def test_an_old_test_that_an_import_keeps_from_being_found_before_the_fix_passed_before_it(fake, before):
    found = fake.validate(base={Y: "p", OTHER: "f"}, base_with_tests=before, fix={X: "p", Y: "p", OTHER: "p"})
    assert (found.fail_to_pass, found.pass_to_pass) == ((X, OTHER), (Y,))
    alone = fake.validate(base={Y: "p"}, base_with_tests=before, fix={Y: "p"})
    assert (alone.fail_to_pass, alone.pass_to_pass) == ((Y,), ())  # what else could the fix be proven by


def test_an_old_test_that_ran_and_failed_with_the_fixs_tests_was_broken_before_it(fake):
    found = fake.validate(base={X: "p"}, base_with_tests={X: "f"}, fix={X: "p"})
    assert (found.fail_to_pass, found.pass_to_pass) == ((X,), ())


def test_a_check_has_well_more_time_than_the_fix_took(fake):
    found = fake.validate(base_with_tests={X: "f"}, fix={X: "p"})
    assert check_timeout_s(found) == 60.0


series = st.text("pfsh", min_size=3, max_size=3)
tests = st.sampled_from([X, Y, OTHER])
sure = st.tuples(st.sampled_from([X, Y]), st.permutations([("fff", "ppp"), ("ppp", "ppp")])).map(
    lambda drawn: {drawn[0]: drawn[1][0], OTHER: drawn[1][1]}
)
outcomes = st.dictionaries(tests, st.tuples(series, series)) | sure


@reaches("fail to pass", "pass to pass", "neither", "wavering")
@given(outcomes, st.sets(tests, max_size=1))
def test_whatever_comes_out_a_listed_test_did_so_in_all_runs_of_its_file(tmp_path_factory, drawn, new):
    before = {test: runs for test, (runs, _) in drawn.items() if test not in new}
    after = {test: runs for test, (_, runs) in drawn.items()}
    found = FakeTests(tmp_path_factory.mktemp("any")).validate(base_with_tests=before, fix=after)
    reached("fail to pass", found.fail_to_pass)
    reached("pass to pass", found.pass_to_pass)
    reached("neither", found.cause is not None)
    reached("wavering", found.wavering)
    for test in found.fail_to_pass:
        assert set(before.get(test, "f")) <= {"f", "h"}
        assert after[test] == "ppp"
    files = {test.partition("::")[0] for test in found.fail_to_pass + found.wavering}
    for test in found.pass_to_pass:
        times = 3 if test.partition("::")[0] in files else 1
        assert before[test][:times] == "p" * times
        assert after[test][: max(2, times)] == "p" * max(2, times)
    assert (found.cause is None) == bool(found.fail_to_pass)
    assert not {*found.wavering} & {*found.fail_to_pass, *found.pass_to_pass}


@pytest.mark.parametrize(
    ("seconds", "timeout_s"), [(0.0, 60.0), (6.0, 60.0), (12.0, 90.0), (30.0, 180.0), (1e6, 3600.0)]
)
def test_a_check_has_well_over_what_the_slowest_run_of_the_fix_took(seconds, timeout_s):
    runs = tuple(
        ValidationRun(tree=tree, passed=1, failed=0, skipped=0, hung=0, elapsed_s=took)
        for tree, took in (("fix", seconds), ("fix", 0.0), ("base", 9e9))
    )
    assert check_timeout_s(FixValidation(fail_to_pass=(), pass_to_pass=(), runs=runs)) == timeout_s
    assert check_timeout_s(FixValidation(fail_to_pass=(), pass_to_pass=())) == 60.0


def test_a_test_that_hangs_before_the_fix_failed_there_and_each_end_is_counted(fake):
    found = fake.validate(base={Y: "s"}, base_with_tests={X: "h", Y: "s"}, fix={X: "p", Y: "s"})
    assert (found.fail_to_pass, found.pass_to_pass, found.cause) == ((X,), (), None)
    fix, before, base = found.runs[:3]
    assert (fix.passed, fix.failed, fix.skipped, fix.hung) == (1, 0, 1, 0)
    assert (before.passed, before.failed, before.skipped, before.hung) == (0, 0, 1, 1)
    assert (base.passed, base.skipped, base.elapsed_s, base.problem) == (0, 1, 0.5, None)
    assert (found.isolation, found.relaxed, found.environment) == ("bwrap", False, None)


def test_a_test_that_was_skipped_before_the_fix_is_not_from_fail_to_pass(fake):
    found = fake.validate(base_with_tests={X: "s", Y: "f"}, fix={X: "p", Y: "p"})
    assert (found.fail_to_pass, found.pass_to_pass) == ((Y,), ())


@pytest.mark.parametrize(
    ("detail", "said", "lacking"),
    [
        ("Traceback\nE: No module named 'six'", ": E: No module named 'six'", True),
        (
            "usage: pytest\npytest: error: unrecognized arguments: --x\n  inifile: a",
            "unrecognized arguments: --x",
            True,
        ),
        ("  \n", "its own tests that must pass and fail did not after the fix", False),
    ],
)
def test_a_run_that_counts_for_nothing_says_its_last_line_and_whether_it_lacks_something(
    fake, detail, said, lacking
):
    fake.detail = detail
    found = fake.validate(fix={X: "p"}, problems={"fix": RunProblem.TAMPERED})
    assert (found.cause, found.lacking) == (RootCause.SCENARIO_SYNTHESIS, lacking)
    assert found.reason.endswith(said)
    fake.detail = ""
    found = fake.validate(fix={X: "p"}, problems={"base_with_tests": RunProblem.TIMEOUT})
    assert (found.cause, found.reason) == (RootCause.ENVIRONMENT, "out of time before the fix")
    found = fake.validate(fix={X: "p"}, base_with_tests={X: "f"}, problems={"base": RunProblem.TIMEOUT})
    assert (found.cause, found.runs[2].problem) == (None, "timeout")


def test_a_test_that_hangs_or_fails_before_the_fix_does_not_waver_and_one_that_hangs_after_it_fails(fake):
    found = fake.validate(base_with_tests={X: "hfhfhfhfhfhf"}, fix={X: "p"})
    assert (found.fail_to_pass, found.wavering) == ((X,), ())
    found = fake.validate(base_with_tests={X: "f"}, fix={X: "h"})
    assert (found.cause, found.reason) == (
        RootCause.TEST_FAILURE, f"fails after the fix: {X} (because of h)"
    )  # fmt: skip


def test_what_only_the_code_after_the_fix_uses_is_a_doubt(fake):
    fake.uses = {"base": ("tracing",), "base_with_tests": ("native",), "fix": ("ctypes", "native", "tracing")}
    found = fake.validate(base_with_tests={X: "f"}, fix={X: "p"})
    assert (found.uses, found.doubts.uses) == (("ctypes", "native", "tracing"), ("ctypes",))


def test_a_test_that_passed_before_and_fails_after_the_fix_or_whose_file_does_is_broken(fake):
    found = fake.validate(base={Y: "p"}, base_with_tests={X: "f"}, fix={X: "p", Y: "f"})
    assert (found.fail_to_pass, found.doubts.broken) == ((X,), (Y,))
    found = fake.validate(
        base={Y: "p"}, base_with_tests={OTHER: "p"}, fix={"tests/test_a.py": "f", OTHER: "f"}
    )
    assert (found.cause, found.doubts.broken) == (RootCause.TEST_FAILURE, (Y, OTHER))
    assert found.reason.startswith("fails after the fix: tests/test_a.py")

"""What is said of errors that are not ours."""

import pytest

from pytest_tfgrpo.core.errors import (
    AWAY,
    TIMEOUT,
    UNMADE,
    AgentFailure,
    ModelError,
    ProviderError,
    describe,
)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "said"),
    [(KeyError("a"), "KeyError: 'a'"), (TimeoutError(), "TimeoutError"), (Unspeakable(), "Unspeakable")],
)
def test_an_error_is_told_by_its_type_and_its_message_if_it_has_one(error: Exception, said: str) -> None:
    assert describe(error) == said


def test_faults_of_a_rollout_have_a_code_what_was_done_and_the_time_of_a_recording() -> None:
    assert (ProviderError("gone").code, AgentFailure("gone").code) == ("provider", "crash")
    fault = AgentFailure("late", TIMEOUT, answer="half", latency_ms=5.0)
    assert (fault.code, fault.answer, fault.frames, fault.latency_ms, str(fault)) == (
        "timeout", "half", (), 5.0, "late",
    )  # fmt: skip
    assert ProviderError("", "").code == "", "an empty code is one too"
    assert ModelError("no", "auth", cost_usd=0.5).cost_usd == 0.5
    assert ModelError("no", "auth").cost_usd is None


def test_which_reason_codes_are_no_results_and_which_may_work_later() -> None:
    assert {"budget", "user_away"} == UNMADE
    assert {
        *("lost_worker", "auth", "bad_response", "connection", "network", "not_found", "provider"),
        *("rate_limit", "server", "timeout"),
    } == AWAY
    assert not UNMADE & AWAY

"""Trace and span ids, from identity alone."""

from pytest_tfgrpo.core.trace_ids import child_id, span_id, trace_id, traceparent

RUN = "20260101T000000-12345678"


def test_ids_are_the_same_in_every_process_and_version() -> None:
    trace, span = trace_id(RUN), span_id("rollout", f"{RUN}.e1.a.r0")
    assert trace.hex() == "0228f4833b385b9dcaee78fe7afc8deb"
    assert span.hex() == "31646190c797fd5c"
    assert child_id(span, 0).hex() == "cf9bdb4a46e27971"
    assert traceparent(trace, span, sampled=True) == f"00-{trace.hex()}-{span.hex()}-01"
    assert traceparent(trace, span, sampled=False).endswith("-00")


def test_equal_names_of_different_kinds_have_different_ids() -> None:
    assert span_id("group", f"{RUN}.e1.a.r0") != span_id("rollout", f"{RUN}.e1.a.r0")


def test_the_spans_of_a_large_run_do_not_collide() -> None:
    rollouts = [span_id("rollout", f"{RUN}.e1.s{n}.r{i}") for n in range(1000) for i in range(20)]
    children = [child_id(rollout, place) for rollout in rollouts for place in range(5)]
    assert len({*rollouts, *children}) == 20_000 * 6

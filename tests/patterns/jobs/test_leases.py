"""Leases of jobs, by clocks that tests set."""

import threading

import pytest
from support.patterns.jobs import job_id, queue_with, status_of

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.patterns.jobs.leases import LeaseKeeper, LeaseWatch
from pytest_tfgrpo.patterns.jobs.queue import RENEWED_S, TTL_S, JobQueue


@pytest.fixture
def queue(tmp_path):
    with queue_with(tmp_path) as queue:
        yield queue


@pytest.fixture
def clock():
    return [100.0]


@pytest.fixture
def watch(clock):
    return LeaseWatch(ttl_s=60, clock=lambda: clock[0])


def test_a_lease_that_stays_as_it_is_is_ended(queue, clock, watch):
    queue.take("other-1")
    assert watch.look(queue) == []
    assert watch.is_unsure("mine-")
    clock[0] += 59.9
    assert watch.look(queue) == []
    clock[0] += 0.1
    assert [job.id for job in watch.look(queue)] == [job_id()]
    assert status_of(queue) == "queued"
    assert watch.look(queue) == []
    assert not watch.is_unsure("mine-")


def test_a_lease_has_a_minute_and_is_renewed_four_times_in_it(queue, clock):
    watch = LeaseWatch(clock=lambda: clock[0])
    queue.take("other-1")
    watch.look(queue)
    clock[0] += TTL_S - 0.1
    assert watch.look(queue) == []
    clock[0] += 0.1
    assert len(watch.look(queue)) == 1
    assert (TTL_S, RENEWED_S) == (60.0, 15.0)


def test_a_renewed_lease_counts_from_then(queue, clock, watch):
    queue.take("other-1")
    for _ in range(4):
        watch.look(queue)
        queue.renew(job_id(), "other-1")
        clock[0] += 59
    assert watch.look(queue) == []
    assert not watch.is_unsure("mine-")
    clock[0] += 60
    assert watch.look(queue) != []


def test_a_clock_that_goes_back_ends_no_lease_and_keeps_none_for_ever(queue, clock, watch):
    queue.take("other-1")
    watch.look(queue)
    clock[0] -= 1000
    assert watch.look(queue) == []
    clock[0] += 1060
    assert len(watch.look(queue)) == 1


def test_the_wall_clock_does_not_count(queue, clock, watch, monkeypatch):
    queue.take("other-1")
    watch.look(queue)
    monkeypatch.setattr("time.time", lambda: 0.0)
    clock[0] += 59
    assert watch.look(queue) == []


def test_the_next_holder_of_a_job_has_its_own_time(queue, clock, watch):
    queue.take("other-1")
    watch.look(queue)
    clock[0] += 59
    queue.lose(job_id(), queue.find(job_id()).beat)
    queue.take("other-2")
    clock[0] += 2
    assert watch.look(queue) == []
    assert watch.is_unsure("mine-")
    assert not watch.is_unsure("other-")


def held(queue, monkeypatch, renew):
    """Return whether a lease was taken to be lost after its keeper renewed it as told."""
    queue.take("w1")
    done = threading.Event()

    def told(_queue, _job, _holder):
        try:
            return renew()
        finally:
            done.set()

    monkeypatch.setattr(JobQueue, "renew", told)
    with LeaseKeeper(queue.folder, job_id(), "w1", ttl_s=0.0, renewed_s=0.001) as lease:
        assert done.wait(10)
    return lease.lost


def test_a_keeper_sees_that_its_lease_was_lost(queue, monkeypatch):
    assert held(queue, monkeypatch, lambda: False)


def test_a_keeper_that_cannot_renew_takes_its_lease_to_be_lost(queue, monkeypatch):
    def fail():
        raise StoreError("the disk is full")

    assert held(queue, monkeypatch, fail)


def test_a_keeper_renews(queue):
    before = queue.take("w1").beat
    renewed = threading.Event()
    with LeaseKeeper(queue.folder, job_id(), "w1", renewed_s=0.001) as lease:
        while queue.find(job_id()).beat < before + 2:
            renewed.wait(0.001)
    assert not lease.lost

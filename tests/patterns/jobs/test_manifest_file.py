"""The file of a job's manifest."""

import json
from dataclasses import replace

import pytest
from support.patterns.jobs import manifest

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.harvest.fixes import RootCause
from pytest_tfgrpo.patterns.jobs.manifest import JobAttempt, JobRequeue, LearningStatus
from pytest_tfgrpo.patterns.jobs.manifest_file import read_manifest, write_manifest

FULL = replace(
    manifest(trigger="self"),
    status=LearningStatus.NEEDS_MANUAL,
    root_cause=RootCause.SCENARIO_SYNTHESIS,
    reason="no runner",
    released_by="ben",
    attempts=(JobAttempt(worker="w", started_at="2026-01-01T12:00:00.000Z", status="queued"),),
    requeues=(JobRequeue(approver="ann", reason="it was full", at="t", scenario_sha256="e" * 64),),
    scenario="one",
    pattern="two",
)


@pytest.mark.parametrize("one", [manifest(), replace(manifest(), snapshot=None), FULL])
def test_a_manifest_comes_back_and_fits_its_schema(tmp_path, one):
    write_manifest(tmp_path / "job", one)
    assert read_manifest(tmp_path / "job") == one
    assert violations("learning-job", to_wire(one)) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"status": "done"}, "#/status: 'done' is not one of"),
        ({"more": 1}, "#/more: unknown key 'more'"),
        ({"captured": {}}, "#/captured: missing key 'task_id'"),
        ({"job_id": "../x"}, "#/job_id"),
        ({"root_cause": "fate"}, "#/root_cause: 'fate' is not one of"),
    ],
)
def test_what_does_not_fit_is_named_with_its_file_and_place(tmp_path, change, said):
    (tmp_path / "manifest.json").write_text(json.dumps({**to_wire(manifest()), **change}))
    with pytest.raises(StoreError, match=r"manifest\.json") as caught:
        read_manifest(tmp_path)
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\ud800".encode("utf-8", "surrogatepass")])
def test_a_damaged_manifest_raises(tmp_path, text):
    (tmp_path / "manifest.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(StoreError, match="restore it"):
        read_manifest(tmp_path)


def test_a_missing_manifest_is_named(tmp_path):
    with pytest.raises(StoreError, match=r"cannot read .*manifest\.json: No such file"):
        read_manifest(tmp_path)


def test_a_link_in_its_place_goes_and_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "other").write_text("mine")
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "manifest.json").symlink_to("../other")
    write_manifest(tmp_path / "job", FULL)
    assert ((tmp_path / "other").read_text(), read_manifest(tmp_path / "job")) == ("mine", FULL)
    with pytest.raises(StoreError, match=r"cannot write .*other/manifest\.json: .*; make room"):
        write_manifest(tmp_path / "other", FULL)

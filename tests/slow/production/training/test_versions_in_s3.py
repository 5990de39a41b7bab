"""Versions, logs and curves in a bucket, as S3 serves it."""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from support.feedback.training import payload, statuses
from support.feedback.training_service import (
    Service,
    bring,
    configure,
    count_calls,
    kill_run,
    make_project,
    runs_once,
    wait,
)
from support.tools import require_module, tfgrpo

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.training.jobs.job_store import TrainingJobs
from pytest_tfgrpo.production.training.jobs.request import TrainingRequest
from pytest_tfgrpo.production.training.versions.artifacts import open_artifacts
from pytest_tfgrpo.production.training.versions.policies import Policies

pytestmark = pytest.mark.timeout(400)

STORE = "s3://models/agent"
JOB = derived_id("job", "one")


@pytest.fixture
def s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve a bucket `models`, which drivers find by the variables of AWS."""
    require_module("s3fs")
    require_module("moto.server")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    for name, value in {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with (tmp_path / "moto.log").open("wb") as log:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environ)
    until = time.monotonic() + 100
    while time.monotonic() < until:
        assert server.poll() is None, (tmp_path / "moto.log").read_text()
        with suppress(OSError):
            urllib.request.urlopen(urllib.request.Request(f"{url}/models", method="PUT"), timeout=10).close()
            break
        time.sleep(0.05)
    yield
    importlib.import_module("s3fs").S3FileSystem.clear_instance_cache()  # one knows the port of its server
    server.kill()
    server.wait()


def test_what_a_job_leaves_is_in_a_bucket_and_managed_there(
    s3: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_project(tmp_path)
    count_calls(tmp_path)
    configure(tmp_path, "embedded:bus.db")
    config = tmp_path / "loop.toml"
    config.write_text(f'{config.read_text()}store = "{STORE}"\n')
    service = Service(tmp_path)
    with closing(open_bus("embedded:bus.db")) as bus:
        bring(bus)
        TrainingJobs(bus, "test").submit(TrainingRequest(payload=payload()))
        service.start()
        try:
            assert wait(bus, tmp_path) == "completed", statuses(bus)[-1]
        finally:
            service.end(signal.SIGTERM)
            kill_run(tmp_path)
        artifacts = statuses(bus)[-1]["artifacts"]
    assert artifacts == {
        "final_checkpoint": f"{STORE}/rl-checkpoints/v2",
        "model_card": f"{STORE}/rl-checkpoints/v2/README.md",
        "tensorboard_logs": f"{STORE}/rl-logs/{JOB}",
        "training_curves": f"{STORE}/rl-viz/{JOB}/curve.svg",
    }
    files = open_artifacts(STORE)
    policy = json.loads(files.read("rl-checkpoints/v2/policy.json") or b"")
    assert violations("policy", policy) == []
    run = runs_once(tmp_path)
    for name in ("journal.jsonl", "report.json", "report.html"):
        assert files.read(f"rl-logs/{JOB}/{name}") == (run / name).read_bytes()
    assert (files.read(f"rl-logs/{JOB}/safety-bias.html") or b"").startswith(b"<!doctype html>")
    assert (files.read(f"rl-viz/{JOB}/curve.svg") or b"").startswith(b"<svg")
    said = tfgrpo("loop", "versions", "verdict", "v2", "--human-eval-score", "0.9", *BY)
    assert "v2: human evaluation 0.9, says ada: read it" in said
    assert b"human evaluation 0.9" in (files.read("rl-checkpoints/v2/README.md") or b"")
    assert "of new sessions" in tfgrpo("loop", "approve", "v2", "--emergency-override", *BY)
    with closing(open_bus("embedded:bus.db")) as bus:
        policies = Policies(bus, files)
        policies.save_library("v2", tmp_path / "library.json")
        assert json.loads((tmp_path / "library.json").read_text())["hash"] == policies.read("v2").library
    files.remove("rl-checkpoints/v2")
    assert files.read("rl-checkpoints/v2/policy.json") is None
    assert files.read("rl-checkpoints/v1/policy.json") is not None
    assert "not whole yet" in tfgrpo("loop", "versions", "list")


BY = ("--by", "ada", "--reason", "read it")


def test_a_bucket_that_is_not_there_is_named(s3: None) -> None:
    with pytest.raises(StoreError, match=r"cannot write s3://nowhere/agent/a/b\.json: .*"):
        open_artifacts("s3://nowhere/agent").write("a/b.json", b"{}")

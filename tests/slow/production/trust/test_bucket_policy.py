"""The rights of the bucket policy on a server of S3 that checks those of users.

moto does not compare the principals of a bucket policy, nor its prefixes of lists: here each user has the
statements of its role as a policy of its own, without both.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from support.tools import require_module

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.training.versions.artifacts import Artifacts, open_artifacts
from pytest_tfgrpo.production.trust.bucket_policy import ROLES, bucket_policy

STORE = "s3://models/agent"
Open = Callable[[str], Artifacts]
Keys = Callable[[str], tuple[str, str]]
FILES = (
    "rl-checkpoints/v2/policy.json",
    "rl-checkpoints/v2/library.json",
    "rl-logs/job/report.json",
    "rl-viz/job/curve.svg",
)


def arn_of(role: str) -> str:
    return f"arn:aws:iam::123456789012:user/{role}"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve S3 and its users."""
    require_module("s3fs")
    require_module("moto.server")
    folder = tmp_path_factory.mktemp("moto")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    found = f"http://127.0.0.1:{port}"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with (folder / "moto.log").open("wb") as log:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environ)
    until = time.monotonic() + 100
    while time.monotonic() < until:
        assert server.poll() is None, (folder / "moto.log").read_text()
        with suppress(OSError):
            urllib.request.urlopen(f"{found}/moto-api/", timeout=10).close()
            break
        time.sleep(0.05)
    yield found
    server.kill()
    server.wait()


@pytest.fixture
def known() -> dict[str, tuple[str, str]]:
    """Return what `opened` fills: id and secret of the key of each user."""
    return {}


@pytest.fixture
def keys(known: dict[str, tuple[str, str]]) -> Keys:
    return known.__getitem__


@pytest.fixture
def opened(url: str, known: dict[str, tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Return a function that opens the store as a user."""
    boto3, s3fs = importlib.import_module("boto3"), importlib.import_module("s3fs")
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    urllib.request.urlopen(urllib.request.Request(f"{url}/moto-api/reset", method="POST"), timeout=10).close()
    s3, iam = boto3.client("s3"), boto3.client("iam")
    s3.create_bucket(Bucket="models")
    for file in FILES:
        s3.put_object(Bucket="models", Key=f"agent/{file}", Body=b"old")
    s3.put_object(Bucket="models", Key="agent/other/secret", Body=b"old")
    policy = bucket_policy(STORE, {role: [arn_of(role)] for role in ROLES})
    for role in (*ROLES, "nobody"):
        iam.create_user(UserName=role)
        made = iam.create_access_key(UserName=role)["AccessKey"]
        known[role] = made["AccessKeyId"], made["SecretAccessKey"]
        mine = [
            {key: value for key, value in one.items() if key not in ("Principal", "Condition")}
            for one in policy["Statement"]
            if one["Principal"]["AWS"] == [arn_of(role)]
        ]
        if mine:
            value = json.dumps({"Version": "2012-10-17", "Statement": mine})
            iam.put_user_policy(UserName=role, PolicyName="store", PolicyDocument=value)
    s3.put_bucket_policy(Bucket="models", Policy=json.dumps(policy))  # the server takes it
    s3.delete_bucket_policy(Bucket="models")
    check_rights(url, after=b"0")

    def open_as(role: str) -> Artifacts:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", known[role][0])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", known[role][1])
        s3fs.S3FileSystem.clear_instance_cache()
        return open_artifacts(STORE)

    yield open_as
    s3fs.S3FileSystem.clear_instance_cache()
    check_rights(url, after=b"inf")


def check_rights(url: str, after: bytes) -> None:
    """Have the server check rights after so many calls."""
    headers = {"Content-Type": "text/plain"}
    request = urllib.request.Request(f"{url}/moto-api/reset-auth", data=after, headers=headers, method="POST")
    urllib.request.urlopen(request, timeout=10).close()


def writable(files: Artifacts) -> list[str]:
    """Return which of the files can be written."""
    found = []
    for file in FILES:
        with suppress(StoreError):
            files.write(file, b"new")
            found.append(file)
    return found


def removable(key: tuple[str, str]) -> list[str]:
    """Return which files can be removed, one by one: for several at once, moto checks the bucket alone."""
    client = importlib.import_module("boto3").Session(*key).client("s3")
    refused = importlib.import_module("botocore.exceptions").ClientError
    found = []
    for file in FILES:
        with suppress(refused):
            client.delete_object(Bucket="models", Key=f"agent/{file}")
            found.append(file)
    return found


def test_a_trainer_reads_writes_and_removes_what_jobs_leave(opened: Open, keys: Keys) -> None:
    files = opened("trainer")
    assert [files.read(file) for file in FILES] == [b"old"] * 4
    assert writable(files) == list(FILES)
    assert removable(keys("trainer")) == list(FILES)


def test_a_deployer_reads_and_writes_what_people_say_of_a_version(opened: Open, keys: Keys) -> None:
    files = opened("deployer")
    assert [files.read(file) for file in FILES] == [b"old"] * 4
    assert writable(files) == ["rl-checkpoints/v2/policy.json"]
    files.write("rl-checkpoints/v2/README.md", b"new")
    with pytest.raises(StoreError, match="cannot remove"):
        files.remove("rl-checkpoints/v2")
    assert files.read("rl-checkpoints/v2/library.json") == b"old"
    assert removable(keys("deployer")) == []


def test_a_reader_reads(opened: Open, keys: Keys) -> None:
    files = opened("reader")
    assert [files.read(file) for file in FILES] == [b"old"] * 4
    assert writable(files) == []
    with pytest.raises(StoreError, match="cannot remove"):
        files.remove("rl-logs/job")
    assert removable(keys("reader")) == []


@pytest.mark.parametrize("role", [*ROLES, "nobody"])
def test_nobody_touches_what_is_beside_the_store(opened: Open, role: str) -> None:
    files = opened(role)
    with pytest.raises(StoreError):
        files.read("other/secret")
    with pytest.raises(StoreError):
        files.write("other/secret", b"new")
    if role == "nobody":
        with pytest.raises(StoreError):
            files.read(FILES[0])

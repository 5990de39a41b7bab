"""The policy of a bucket, as a value; a server with it is in the slow tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.tools import tfgrpo

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.production.trust.bucket_policy import bucket_policy

ARN = "arn:aws:iam::123456789012:role/tfgrpo-trainer"


def test_the_command_prints_the_policy_of_the_configured_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.toml").write_text('[training]\nstore = "s3://models/agent/"\n')
    said = tfgrpo(
        "loop", "bucket-policy", "--trainer", ARN, "--reader", ARN, "--reader", ARN.replace("er", "ee")
    )
    found = {one["Sid"]: one for one in json.loads(said)["Statement"]}
    assert list(found) == ["TrainerLists", "TrainerTrains", "ReaderLists", "ReaderReads"]
    assert found["TrainerTrains"]["Principal"] == {"AWS": [ARN]}
    assert found["TrainerTrains"]["Resource"][0] == "arn:aws:s3:::models/agent/rl-checkpoints/*"
    assert found["TrainerLists"]["Condition"]["StringLike"]["s3:prefix"][0] == "agent/rl-checkpoints"
    assert found["ReaderReads"]["Action"] == ["s3:GetObject"]
    assert found["TrainerTrains"]["Action"] == [
        f"s3:{one}" for one in ("GetObject", "PutObject", "AbortMultipartUpload", "DeleteObject")
    ]
    assert len(found["ReaderReads"]["Principal"]["AWS"]) == 2


def test_the_store_may_be_the_whole_bucket() -> None:
    (_, reads) = bucket_policy("s3://models", {"reader": [ARN]})["Statement"]
    assert reads["Resource"] == [f"arn:aws:s3:::models/rl-{one}/*" for one in ("checkpoints", "logs", "viz")]


def test_who_deploys_reads_all_and_writes_what_it_decides_and_removes_nothing() -> None:
    found = {one["Sid"]: one for one in bucket_policy("s3://models/Agent", {"deployer": [ARN]})["Statement"]}
    assert list(found) == ["DeployerLists", "DeployerReads", "DeployerJudges"]
    assert found["DeployerLists"]["Condition"]["StringLike"]["s3:prefix"] == [
        f"Agent/rl-{one}{end}" for one in ("checkpoints", "logs", "viz") for end in ("", "/*")
    ]
    assert found["DeployerJudges"]["Action"] == ["s3:PutObject", "s3:AbortMultipartUpload"]
    assert found["DeployerJudges"]["Resource"] == [
        f"arn:aws:s3:::models/Agent/rl-checkpoints/*/{file}" for file in ("policy.json", "README.md")
    ]


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:iam::123456789012:root",
        "arn:aws:iam::123456789012:user/ada",
        "arn:aws-cn:iam::123456789012:role/x",
        "arn:aws:sts::123456789012:assumed-role/x/ada@example.org",
    ],
)
def test_an_account_user_role_or_session_may_be_named(arn: str) -> None:
    (lists, _) = bucket_policy("s3://models", {"reader": [arn]})["Statement"]
    assert lists["Principal"] == {"AWS": [arn]}


@pytest.mark.parametrize("store", ["s3://models//agent/", "s3a://models/./agent//", "s3://models/agent"])
def test_slashes_too_many_name_the_folder_that_the_store_uses(store: str) -> None:
    (_, reads) = bucket_policy(store, {"reader": [ARN]})["Statement"]
    assert reads["Resource"][0] == "arn:aws:s3:::models/agent/rl-checkpoints/*"


@pytest.mark.parametrize(
    ("store", "arn", "says"),
    [
        ("s3://models/*", ARN, "a policy cannot name a folder with"),
        ("s3://models/a?ent", ARN, "a policy cannot name a folder with"),
        ("s3://models/${aws:username}", ARN, "a policy cannot name a folder with"),
        ("s3://models/agent/../other", ARN, "a policy cannot name a folder with"),
        ("loop-jobs", ARN, "which is no S3 bucket"),
        ("gs://models/agent", ARN, "which is no S3 bucket"),
        ("s3://models", "*", "is no ARN of a user or role; one is"),
        ("s3://models", "arn:aws:iam::123456789012:role/a\n", "is no ARN"),
        ("s3://models", "", "is no ARN"),
    ],
)
def test_what_would_let_in_others_is_refused(store: str, arn: str, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        bucket_policy(store, {"trainer": [arn]})


def test_nobody_named_is_no_policy() -> None:
    with pytest.raises(SettingError, match="name who trains"):
        bucket_policy("s3://models", {})


@pytest.mark.parametrize(
    ("name", "is_one"), [("ab", False), ("abc", True), ("a" * 63, True), ("a" * 64, False)]
)
def test_a_bucket_has_a_name_of_3_to_63_characters(name: str, is_one: bool) -> None:
    if is_one:
        assert bucket_policy(f"s3://{name}", {"reader": [ARN]})
    else:
        with pytest.raises(SettingError, match="which is no S3 bucket"):
            bucket_policy(f"s3://{name}", {"reader": [ARN]})

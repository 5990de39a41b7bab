"""The policy of an S3 bucket that holds the store: who reads and writes which files of versions and jobs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal, NamedTuple, TypeAlias

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.training.versions.artifacts import CHECKPOINTS, CURVES, LOGS

BucketRole: TypeAlias = Literal["trainer", "deployer", "reader"]
ROLES: tuple[BucketRole, ...] = ("trainer", "deployer", "reader")
_STORE = re.compile(r"s3a?://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?")
_ODD = re.compile(r"[*?$]|(?:^|/)\.\.(?:/|$)")
"""In a folder: what a policy takes for any other or for a variable, or reads otherwise than the store."""
_ARN = re.compile(r"arn:[a-z0-9-]+:(?:iam|sts)::[0-9]{12}:(?:root|(?:user|role|assumed-role)/[\w+=,.@/-]+)")
_READ, _WRITE, _REMOVE = ("s3:GetObject",), ("s3:PutObject", "s3:AbortMultipartUpload"), ("s3:DeleteObject",)


class _Right(NamedTuple):
    """What a role may do with some files."""

    name: str
    actions: tuple[str, ...]
    files: tuple[str, ...]


_ALL = tuple(f"{folder}/*" for folder in (CHECKPOINTS, LOGS, CURVES))
_RIGHTS: Mapping[BucketRole, tuple[_Right, ...]] = {
    "trainer": (_Right("Trains", (*_READ, *_WRITE, *_REMOVE), _ALL),),
    "deployer": (
        _Right("Reads", _READ, _ALL),
        _Right("Judges", _WRITE, tuple(f"{CHECKPOINTS}/*/{file}" for file in ("policy.json", "README.md"))),
    ),
    "reader": (_Right("Reads", _READ, _ALL),),
}


def bucket_policy(store: str, principals: Mapping[BucketRole, Sequence[str]]) -> dict[str, Json]:
    """Return the policy of the bucket of a store for the ARNs of each role, which needs none.

    Raises SettingError for a store that is no S3 bucket, and for what is no ARN.
    """
    bucket, start = _place(store)
    statements: list[Json] = []
    for role in ROLES:
        arns = list(principals.get(role, ()))
        if wrong := [arn for arn in arns if not _ARN.fullmatch(arn)]:
            raise SettingError(
                f"--{role} {wrong[0]!r} is no ARN of a user or role; one is arn:aws:iam::123456789012:role/x"
            )
        if arns:
            statements += _statements(role, arns, f"arn:aws:s3:::{bucket}", start)
    if not statements:
        raise SettingError("name who trains, deploys or reads: --trainer ARN, --deployer ARN, --reader ARN")
    return {"Version": "2012-10-17", "Statement": statements}


def _place(store: str) -> tuple[str, str]:
    """Return the bucket of a store, and how the names of its files begin there; raises SettingError."""
    found = _STORE.fullmatch(store)
    if found is None:
        raise SettingError(
            f"[training] store is {store!r}, which is no S3 bucket; set it to such as s3://models/agent"
        )
    folder = "/".join(PurePosixPath(f"/{found[2] or ''}").parts[1:])  # as the store itself reads it
    if _ODD.search(folder):
        raise SettingError(
            f"[training] store is {store!r}; a policy cannot name a folder with * or ? or $ or .., "
            "so use another one"
        )
    return found[1], f"{folder}/" if folder else ""


def _statements(role: BucketRole, arns: list[str], bucket: str, start: str) -> Iterator[Json]:
    """Yield what a role may do with a bucket, by its ARN: list the store's folders, and its rights there."""
    prefixes = [f"{start}{one}" for one in _listed()]
    lists = _allowed(f"{role.title()}Lists", arns, ("s3:ListBucket",), [bucket])
    yield lists | {"Condition": {"StringLike": {"s3:prefix": prefixes}}}
    for right in _RIGHTS[role]:
        files = [f"{bucket}/{start}{file}" for file in right.files]
        yield _allowed(f"{role.title()}{right.name}", arns, right.actions, files)


def _allowed(name: str, arns: list[str], actions: Sequence[str], resources: list[str]) -> dict[str, Json]:
    who: dict[str, Json] = {"AWS": arns}
    return {
        "Sid": name,
        "Effect": "Allow",
        "Principal": who,
        "Action": list(actions),
        "Resource": resources,
    }


def _listed() -> list[str]:
    """Return the prefixes of a list of files below the store, with and without a slash at the end."""
    return [f"{one}{end}" for one in (CHECKPOINTS, LOGS, CURVES) for end in ("", "/*")]

"""The command ``tfgrpo loop bucket-policy``: who may do what with the files of versions."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pytest_tfgrpo.cli.loop.open_loop import load_config
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.production.trust.bucket_policy import ROLES
from pytest_tfgrpo.production.trust.bucket_policy import bucket_policy as policy


def bucket_policy(arguments: Arguments) -> Iterator[str]:
    """Print the policy of an S3 bucket for who trains, deploys and reads versions."""
    principals = {role: getattr(arguments, role) for role in ROLES}
    yield json.dumps(policy(load_config(arguments.config).store, principals), indent=2)

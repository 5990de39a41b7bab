"""What the paths of the service call, beside those that take events."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pytest_tfgrpo.production.service.answers import HttpAnswer
from pytest_tfgrpo.production.service.training import TrainingApi


class ServiceApis(NamedTuple):
    """Each is called in a thread of the service."""

    training: TrainingApi
    metrics: Callable[[], HttpAnswer]

"""Requests for datasets, as training requests have them."""

from __future__ import annotations

from pytest_tfgrpo.core.events import SCHEMAS, TRAINING_REQUEST
from pytest_tfgrpo.core.wire.schema import load_schema
from pytest_tfgrpo.production.training.dataset.request import DatasetRequest, request_of


def test_the_dataset_of_a_training_request_is_one_of_these() -> None:
    dataset = load_schema(SCHEMAS[TRAINING_REQUEST])["examples"][0]["training_config"]["dataset"]
    found = request_of({**dataset, "filter": {**dataset["filter"], "exclude_subordinate_profiles": ["x"]}}, 7)
    assert found == DatasetRequest(
        min_reward=0.5,
        max_turns=50,
        start="2025-12-01T00:00:00.000Z",
        end="2025-12-08T12:59:59.000Z",
        domains=("coding", "research"),
        without_profiles=("x",),
        sample_size=10000,
        seed=7,
    )
    assert request_of({"filter": found.filter(), "sample_size": 10000}, 7) == found


def test_a_request_without_a_filter_takes_all() -> None:
    assert request_of({"source": "nats_stream"}) == DatasetRequest()
    assert DatasetRequest().filter() == {}

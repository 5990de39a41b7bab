"""Values written into scenario files: readable where all of it can be shown, escaped where not."""

import json

import pytest
import yaml

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.suite.documents.rewriting import Rewriter


@pytest.mark.parametrize(
    ("value", "as_json", "as_yaml"),
    [
        ("a é", '"a é"', "'a é'"),
        ("é\n\x1b", r'"é\n\u001b"', r'"é\n\x1b"'),
        ('"\t\u2028\U000e0001', r'"\"\t\u2028\udb40\udc01"', r'"\"\t\u2028\U000e0001"'),
        ("it's", '"it\'s"', "'it''s'"),
        ("plain", '"plain"', "plain"),
        ("yes", '"yes"', "'yes'"),
        ("Off", '"Off"', "'Off'"),
        ("1.5", '"1.5"', "'1.5'"),
        ("", '""', '""'),
        ({"no": [True, None, 1]}, '{"no": [true, null, 1]}', "{'no': [true, null, 1]}"),
    ],
)
def test_a_value_on_one_line_is_read_as_it_was(value: Json, as_json: str, as_yaml: str) -> None:
    assert (Rewriter("", yaml=False).flow(value), Rewriter("", yaml=True).flow(value)) == (as_json, as_yaml)
    assert json.loads(as_json) == yaml.safe_load(as_yaml) == value

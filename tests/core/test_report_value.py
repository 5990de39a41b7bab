"""The type of a report's value says what its schema says; the checks of the schema look at the blocks."""

from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.core.wire.schema import load_schema
from pytest_tfgrpo.report.blocks.table import BLOCKS


def test_the_keys_of_a_report_are_those_of_its_schema() -> None:
    schema = load_schema("report")
    blocks = [block.key for block in BLOCKS]
    assert sorted([*Report.__annotations__, *blocks]) == sorted(schema["properties"])
    assert Report.__required_keys__ == set(schema["required"])

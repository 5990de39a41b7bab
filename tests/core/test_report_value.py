"""The type of a report's value says what its schema says; the checks of the schema look at the blocks."""

from pytest_tfgrpo.core.report_blocks import Report
from pytest_tfgrpo.core.schema import load_schema


def test_the_keys_of_a_report_are_those_of_its_schema() -> None:
    schema = load_schema("report")
    assert set(Report.__annotations__) == schema["properties"].keys()
    assert Report.__required_keys__ == set(schema["required"])

"""Variables of OpenTelemetry that are numbers."""

import pytest
from support.sweeps import SETTINGS

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.telemetry.sinks.otel import Telemetry


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "1000000000", "²", "ten"])
def test_a_limit_is_a_whole_number_above_0(text: str) -> None:
    with pytest.raises(
        SettingError, match=f"OTEL_BSP_MAX_QUEUE_SIZE must be a whole number > 0, not '{text}'"
    ):
        Telemetry(SETTINGS, {"OTEL_BSP_MAX_QUEUE_SIZE": text})  # type: ignore[arg-type]


def test_the_largest_and_the_smallest_limit_are_taken() -> None:
    for text in ("1", "999999999", " 7 ", ""):
        with pytest.raises(SettingError, match="OTEL_BSP_SCHEDULE_DELAY"):  # what is read later is wrong
            Telemetry(SETTINGS, {"OTEL_BSP_MAX_QUEUE_SIZE": text, "OTEL_BSP_SCHEDULE_DELAY": "x"})  # type: ignore[arg-type]

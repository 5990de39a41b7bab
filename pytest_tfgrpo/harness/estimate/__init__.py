"""Estimates: what a run will ask, use and cost, as ranges, before anything is asked."""

from __future__ import annotations

from pytest_tfgrpo.harness.estimate.forecast import Forecast, forecast
from pytest_tfgrpo.harness.estimate.lines import lines

__all__ = ["Forecast", "forecast", "lines"]

"""The blocks of the report, in the order in which they stand on terminal, Markdown and page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_tfgrpo.report.blocks.as_failures import AS_FAILURES
from pytest_tfgrpo.report.blocks.block import ReportBlock
from pytest_tfgrpo.report.blocks.contamination import CONTAMINATION
from pytest_tfgrpo.report.blocks.endpoints import ENDPOINTS
from pytest_tfgrpo.report.blocks.evidence import EVIDENCE, UNTESTED_LESSONS
from pytest_tfgrpo.report.blocks.families import FAMILIES
from pytest_tfgrpo.report.blocks.fault_messages import FAULT_MESSAGES
from pytest_tfgrpo.report.blocks.flaky import FLAKY
from pytest_tfgrpo.report.blocks.low import LOW
from pytest_tfgrpo.report.blocks.noise import HEADROOM, NOISE
from pytest_tfgrpo.report.blocks.placebo import PLACEBO
from pytest_tfgrpo.report.blocks.reach import REACH
from pytest_tfgrpo.report.blocks.reused import REUSED
from pytest_tfgrpo.report.blocks.sequential import SEQUENTIAL

BLOCKS: Sequence[ReportBlock[Any]] = (
    PLACEBO, EVIDENCE, UNTESTED_LESSONS, FAMILIES, HEADROOM, NOISE, FLAKY, REUSED, REACH, CONTAMINATION,
    SEQUENTIAL, AS_FAILURES, ENDPOINTS, FAULT_MESSAGES, LOW,
)  # fmt: skip

"""Contamination: what train, dev and eval share, and where answers stand that must not (decision 21)."""

from pytest_tfgrpo.harness.contamination.answers import AnswerIndex, Answers
from pytest_tfgrpo.harness.contamination.findings import Finding, complaint, found_value
from pytest_tfgrpo.harness.contamination.inspection import inspect

__all__ = ["AnswerIndex", "Answers", "Finding", "complaint", "found_value", "inspect"]

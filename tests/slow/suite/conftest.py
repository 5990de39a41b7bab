"""A folder of scenario files, written and loaded."""

from support.suite.fixtures import load, refusal

__all__ = ["load", "refusal"]

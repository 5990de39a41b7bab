"""A workspace, and a way to load a check and judge an answer with it."""

from support.checks.fixtures import folder, judge, load, workspace

__all__ = ["folder", "judge", "load", "workspace"]

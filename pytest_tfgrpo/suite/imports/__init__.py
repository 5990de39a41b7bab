"""Scenarios made of other tools' test files; nothing in such a file is executed."""

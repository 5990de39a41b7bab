"""Numerals for tests: a table of answers, and a corpus that is made."""

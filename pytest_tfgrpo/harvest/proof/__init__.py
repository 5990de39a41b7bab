"""Prove that tests fail before a fix and pass after it."""

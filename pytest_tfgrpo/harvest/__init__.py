"""Patterns: the history of a repository as proven scenarios."""

"""Acceptance: the dev split alone decides whether the lessons of an epoch are kept."""

"""Acceptance: whether what an epoch learned comes into force, decided on the dev split alone."""

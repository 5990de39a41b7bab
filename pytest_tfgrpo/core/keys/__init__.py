"""Typed keys of settings: what each may be, and how its text is read."""

"""Marks of people on the answers of a run: where checks and people disagree, and what to change."""

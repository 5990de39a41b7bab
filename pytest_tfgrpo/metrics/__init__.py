"""Figures of a run: paired comparisons, rows per epoch, costs, noise and significance."""

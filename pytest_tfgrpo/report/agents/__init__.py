"""Agents side by side: a column each, pairwise differences, cost against score."""

"""Estimates: what a run will use and cost, as ranges, before it starts."""

"""Estimates: what a run will ask, use and cost, as ranges, before anything is asked."""

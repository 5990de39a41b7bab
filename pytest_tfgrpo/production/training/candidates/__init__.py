"""Candidates: what production knows of right answers, as scenarios that a person accepts or not."""

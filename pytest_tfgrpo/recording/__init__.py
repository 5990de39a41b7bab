"""Recordings: the answers of a run in one file fit for git, and replays that cost nothing."""

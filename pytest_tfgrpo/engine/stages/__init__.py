"""Stages: what may surround the attempts of a run, a file each."""

"""Capture: finished work as a snapshot and a job, at the moment of its approval."""

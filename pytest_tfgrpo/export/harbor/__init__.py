"""Scenarios as tasks in the format of Harbor."""

"""Scenarios as items of pytest: collected, selected, checked and failed."""

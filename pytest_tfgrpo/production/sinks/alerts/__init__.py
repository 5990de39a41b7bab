"""Alerts to a command of yours, once each."""

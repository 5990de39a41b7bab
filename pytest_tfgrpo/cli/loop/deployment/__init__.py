"""Decisions of people about versions and their deployment."""

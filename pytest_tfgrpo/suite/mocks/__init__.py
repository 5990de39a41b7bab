"""Mocks of tools, as scenario files have them."""

"""Texts: made safe to show, and what is found in them."""

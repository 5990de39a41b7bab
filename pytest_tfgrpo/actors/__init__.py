"""Actors by name: the table of spec strings and the one factory over it."""

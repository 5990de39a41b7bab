"""Calls to actors, for the tests of this folder."""

from support.actors.fixtures import ask, make_call

__all__ = ["ask", "make_call"]

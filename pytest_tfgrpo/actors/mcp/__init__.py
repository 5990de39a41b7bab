"""Servers of the Model Context Protocol, whose tools a language model may call."""

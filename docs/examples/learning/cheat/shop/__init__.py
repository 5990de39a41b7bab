"""A small shop."""

VERSION = 2

"""A small shop."""

VERSION = 1

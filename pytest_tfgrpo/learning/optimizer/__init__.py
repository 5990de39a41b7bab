"""Optimizers: from the scored groups of an epoch to operations on the library."""

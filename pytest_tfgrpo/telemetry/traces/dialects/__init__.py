"""Dialects of spans: how each framework writes what its agent did."""

"""Contamination: what train, dev and eval share, and where answers stand that must not (decision 21)."""

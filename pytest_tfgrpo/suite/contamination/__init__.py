"""Contamination: what train, dev and eval share, and answers in prompts or lessons (decision 21)."""

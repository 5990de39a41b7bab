"""Jobs: what was captured, and what became of it."""

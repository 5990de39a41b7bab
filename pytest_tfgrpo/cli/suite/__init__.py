"""Commands that make a suite."""

"""From a range of history to a proven suite, and its proof again."""

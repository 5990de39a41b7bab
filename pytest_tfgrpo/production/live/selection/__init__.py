"""The selector and its evidence: how it learns, and when it must stop."""

"""Language models: the only door to one (design 3)."""

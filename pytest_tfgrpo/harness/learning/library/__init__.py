"""The library of lessons, the screen before it, retrieval from it, and the experience store."""

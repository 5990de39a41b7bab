"""Contestants of the arena: what makes lessons or prompts better, each in a file of its own."""

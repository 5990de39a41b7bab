"""The commands that serve deployed versions, a module each."""

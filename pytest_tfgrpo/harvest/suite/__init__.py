"""The files of a harvested suite."""

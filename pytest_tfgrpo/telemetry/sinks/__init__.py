"""Sinks: where the records of a run go besides its own files."""

"""The journal of a run, written and read, with what is kept of it in memory."""

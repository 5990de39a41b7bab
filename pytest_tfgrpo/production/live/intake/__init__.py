"""How events of runs come in: from spans and marks to the store."""

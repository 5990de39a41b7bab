"""The bus in one SQLite file, for several processes."""

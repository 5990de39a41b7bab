"""The live store: its file, its tables, and how runs are written and read."""

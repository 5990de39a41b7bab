"""Where an attempt runs: its folder, safe paths, bubblewrap, daemon threads, and its file changes."""

"""Where an attempt runs: its folder, safe paths, bubblewrap, daemon threads, and what it changed."""

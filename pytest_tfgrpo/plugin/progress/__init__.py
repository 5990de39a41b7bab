"""What a run shows while it works: lines, screens, and annotations of GitHub."""

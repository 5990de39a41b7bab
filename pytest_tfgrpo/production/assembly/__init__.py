"""From spans to trajectories."""

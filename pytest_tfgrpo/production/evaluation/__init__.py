"""From trajectories and feedback to published rewards."""

"""What a run is: its job, schedule and splits, and its journal on disk."""

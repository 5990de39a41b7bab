"""The page of the loop: versions over time, both arms of each ramp, decisions, and lessons."""

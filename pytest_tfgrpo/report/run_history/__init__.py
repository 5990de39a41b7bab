"""The runs of a task over time: mean, gain, cost and time, by commit and library."""

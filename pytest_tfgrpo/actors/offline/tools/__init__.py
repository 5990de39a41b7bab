"""The tools of the offline agent."""

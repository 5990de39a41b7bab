"""A better fix: the project's agent tries a proven job again, and a smaller fix is a job of its own."""

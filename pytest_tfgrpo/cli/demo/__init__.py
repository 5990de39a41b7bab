"""The application that the demonstrations of both groups serve."""

"""Other forms of tests, and tests beside them, that show whether a runner is honest."""

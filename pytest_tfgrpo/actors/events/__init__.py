"""Events: what a program prints, read into a value for `read_trajectory`, by name of the format."""

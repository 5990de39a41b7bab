"""What the tests of patterns share."""

"""What a person reads of the loop."""

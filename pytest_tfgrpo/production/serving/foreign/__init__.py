"""What is served, written for other programs that serve it: flagd, and TensorZero's gateway."""

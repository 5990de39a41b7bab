"""What a reward is: evidence, components, history; no input or output."""

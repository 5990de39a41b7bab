"""What asks for training by itself."""

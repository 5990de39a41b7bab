"""A run that goes on, seen through its journal alone: figures whose memory the run's plan bounds."""

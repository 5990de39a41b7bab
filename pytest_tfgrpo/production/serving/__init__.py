"""Ways to serve the deployed versions: in process, and as a proxy."""

"""Ways to serve the deployed versions: in process, by a proxy, by other programs."""

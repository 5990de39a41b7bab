"""The runner ``pytest``, and the scripts that it starts."""

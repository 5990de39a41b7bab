"""The commands ``tfgrpo patterns``: the shelf of patterns of a repository."""

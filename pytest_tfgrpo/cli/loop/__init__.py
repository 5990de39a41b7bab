"""The commands ``tfgrpo loop ...`` and their demo."""

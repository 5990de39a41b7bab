"""The commands ``tfgrpo live ...`` and their demo."""

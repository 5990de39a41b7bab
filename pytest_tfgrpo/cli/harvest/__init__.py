"""The command ``tfgrpo harvest``."""

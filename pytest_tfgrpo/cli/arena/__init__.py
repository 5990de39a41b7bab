"""``tfgrpo arena``: prompt optimizers on one budget."""

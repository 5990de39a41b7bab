"""The built-in actor: a small, frozen, honest agent over real tools, without a model, key or network."""

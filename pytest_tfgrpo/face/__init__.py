"""L4: pytest's face of the harness; translates, and holds no rule of the domain."""

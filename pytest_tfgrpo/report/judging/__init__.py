"""How far a judge can be trusted, and what people say of its answers."""

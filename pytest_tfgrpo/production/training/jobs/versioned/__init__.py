"""Jobs whose result becomes a policy version."""

"""Programs: what they need, how they start, and that they end."""

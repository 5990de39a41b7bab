"""The table of tools: what each is called, what it says of itself, and how it is called."""

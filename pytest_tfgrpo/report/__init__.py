"""The report of a run: one value, and its forms for terminal, Markdown and browser."""

"""The arena: prompt optimizers on one budget, measured side by side."""

"""The learning step: prompts with lessons, the library, optimizers, acceptance and attribution."""

"""The optimizer `llm`: learning by a language model, the published method in prompts of our own."""

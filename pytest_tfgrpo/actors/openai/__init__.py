"""The actor ``openai:<model>``: a language model with the scenario's tools, in a bounded loop."""

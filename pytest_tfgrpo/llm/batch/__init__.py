"""Batches: calls that a server answers within hours, for a lower price, by the batch routes of OpenAI."""

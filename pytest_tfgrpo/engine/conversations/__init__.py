"""Conversations: a scenario of several turns, with a user who is simulated or written down."""

"""The ``command:`` actor: any program, one for each rollout or for a conversation."""

"""Who may do what, and who did: the audit, the users of a NATS server, the policy of a bucket."""

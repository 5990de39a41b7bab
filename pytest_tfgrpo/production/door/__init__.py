"""What comes in: who opted out, what is secret, what is malformed; then it is durable."""

"""Events that outlast a process, and state that machines share: embedded in a file, or NATS JetStream."""

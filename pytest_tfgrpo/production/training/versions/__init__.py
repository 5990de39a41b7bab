"""Policy versions: what a job learned, whether it may be deployed, and what it rests on."""

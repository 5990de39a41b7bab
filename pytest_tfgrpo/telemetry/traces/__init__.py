"""OpenTelemetry spans of any agent framework, as the turns of an agent's run."""

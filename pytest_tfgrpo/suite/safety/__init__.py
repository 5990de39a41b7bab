"""Safety suites: scenarios that show whether an agent, with its lessons, still behaves."""

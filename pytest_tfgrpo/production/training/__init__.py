"""From what production shows to a policy version: datasets, jobs, versions."""

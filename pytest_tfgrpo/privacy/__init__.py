"""Secrets and personal data in texts: what looks like one, and what takes its place."""

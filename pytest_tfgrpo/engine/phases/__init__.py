"""One phase: its attempts, checks, groups and outages, and what it teaches."""

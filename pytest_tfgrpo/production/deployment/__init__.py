"""Deployment: which session meets which policy version, and how a version comes to meet more of them."""

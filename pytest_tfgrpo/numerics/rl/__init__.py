"""Reinforcement learning: advantages, returns, losses and policies."""

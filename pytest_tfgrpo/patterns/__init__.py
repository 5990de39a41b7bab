"""Finished work as patterns: captured, proven, written up, reviewed by a person, and shown to help."""

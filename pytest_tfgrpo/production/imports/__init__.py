"""Traces and scores from files of other tools."""

"""Authoring: a pattern written of what a proven job changed, by a model or by a template."""

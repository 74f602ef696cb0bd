"""Verbs on results."""

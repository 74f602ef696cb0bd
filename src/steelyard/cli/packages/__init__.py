"""Verbs on packages."""

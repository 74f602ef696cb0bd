"""Verbs on the catalogue of results."""

"""Verbs that measure or prepare it."""

"""Findings of the colocation study."""

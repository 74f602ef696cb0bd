"""Findings of the scaling study."""

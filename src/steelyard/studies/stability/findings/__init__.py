"""Findings of the stability study."""

"""Findings of the communication study."""

"""Findings of the replication study."""

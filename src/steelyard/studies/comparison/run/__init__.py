"""Executes a comparison until it is settled."""

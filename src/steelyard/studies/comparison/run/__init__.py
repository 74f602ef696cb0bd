"""Runs a comparison until it is settled."""

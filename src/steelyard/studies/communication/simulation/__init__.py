"""Recorded messages in a simulator, and how well it repeats them."""

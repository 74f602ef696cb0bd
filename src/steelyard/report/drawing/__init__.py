"""Draws figures and pages by a browser."""

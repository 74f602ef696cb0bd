"""Isolation technologies, one file each, behind one interface."""

"""Revisions of a Git repository, checked out and built outside of it."""

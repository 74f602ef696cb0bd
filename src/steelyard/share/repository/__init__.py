"""Repositories of packages and how they are fetched."""

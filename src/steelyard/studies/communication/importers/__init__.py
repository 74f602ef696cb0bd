"""Importers of recorded messages, which the communication study analyses."""

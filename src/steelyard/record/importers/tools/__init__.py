"""Importers of tools that measure a system or put load on one."""

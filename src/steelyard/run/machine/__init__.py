"""The measuring machine: its facts, its quietness, its settings and their restoration."""

"""Peaks in series of calls, their periods and what happened at the same time."""

"""Drivers of benchmark harnesses: what a suite has, how one benchmark is run alone, and what it reports."""

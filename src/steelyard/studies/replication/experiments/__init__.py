"""Conducts one run of a replication experiment: the conductor and what it calls."""

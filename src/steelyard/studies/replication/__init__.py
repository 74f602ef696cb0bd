"""The replication study: whether a result holds on another device, in a container, and what makes it fluctuate."""

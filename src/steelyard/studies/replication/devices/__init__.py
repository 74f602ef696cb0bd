"""Devices: where the roles of an experiment are placed, natively or in a container, here or elsewhere."""

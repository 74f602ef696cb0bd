"""Intervals for one sample: what is claimed of a location, and when the claim is guaranteed."""

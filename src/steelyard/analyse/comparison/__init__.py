"""Comparisons of samples: equivalence, sequential looks, agreement of results."""

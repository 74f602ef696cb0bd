"""Stage 6: verify and repeat a result."""

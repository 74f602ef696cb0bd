"""Series of results and of runs: changes of level, warm-up, newest results."""

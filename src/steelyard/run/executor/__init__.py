"""From a plan to outcomes: batches, workers, what they keep."""

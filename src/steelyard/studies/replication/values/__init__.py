"""Values of the runs of an experiment."""

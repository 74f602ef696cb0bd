"""Where an analysis computes: on this machine, or over the cells on several."""

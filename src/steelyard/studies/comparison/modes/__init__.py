"""How the runs of a comparison lie in time, on CPUs and in memory: duets, and layouts that are drawn."""

"""The colocation study: whether a policy protects a service from best-effort jobs."""

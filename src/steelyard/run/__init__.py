"""Stage 2: execute a plan, one durable record after the other."""

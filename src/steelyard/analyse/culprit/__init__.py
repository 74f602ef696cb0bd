"""Which commit of a history changed a program: evidence, posterior, what to measure next."""

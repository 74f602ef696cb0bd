"""Speed-up, laws of scalability, bottlenecks."""

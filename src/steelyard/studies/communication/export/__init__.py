"""Cost models as what other programs read: SimGrid platforms, Python, Rust."""

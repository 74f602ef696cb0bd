"""Foreign result files, one file per format."""

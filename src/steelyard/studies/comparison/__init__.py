"""Commands compared with each other: interleaved, measured until settled, judged with a margin."""

"""A web page over a catalogue of results: found again, read, followed while they are measured, compared."""

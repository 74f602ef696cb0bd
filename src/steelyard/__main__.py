"""Run the command line as ``python -m steelyard``."""

from steelyard.entry import main

main()

"""Time as a function of size: piecewise lines, their boundaries, their noise."""

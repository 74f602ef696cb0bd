"""Trials inside a virtual machine whose kernel has the scheduling class."""

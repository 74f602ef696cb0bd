"""The scheduling class simulated without a kernel."""

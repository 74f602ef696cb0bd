"""Transports: what moves messages between two endpoints that stamp them; one interface, see `interface`."""

from steelyard.studies.communication.transport.interface import (
    HERE,
    Invocation,
    Place,
    TraceOptions,
    Transport,
)

__all__ = ["HERE", "Invocation", "Place", "TraceOptions", "Transport"]

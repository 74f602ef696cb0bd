from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from steelyard.studies.colocation.bins import Requests
from steelyard.studies.colocation.client import LEFT_OUT_SHARE, enough_clients, waiting_clients


def _requests(due_s: np.ndarray, latency_s: np.ndarray) -> Requests:
    count = due_s.size
    return Requests(due_s, latency_s, np.ones(count, bool), np.zeros(count, bool), np.zeros(count))


def _stall() -> Requests:
    """One request each 10 ms that takes 1 ms; from 5 s the service stands still for 1 s."""
    due_s = np.arange(0, 10, 0.01)
    done_s = np.where((due_s >= 5) & (due_s < 6), 6.0, due_s) + 0.001
    return _requests(due_s, done_s - due_s)


def test_a_waiting_client_meets_a_stall_once() -> None:
    requests = _stall()
    sent = waiting_clients(requests, 1)
    assert (requests.latency_s[sent] > 0.01).sum() == 1
    assert (~sent).sum() == 100
    assert np.quantile(requests.latency_s[sent], 0.99) < 0.0011
    assert np.quantile(requests.latency_s, 0.99) > 0.85


@given(
    st.lists(st.tuples(st.floats(0, 10), st.floats(0.001, 2)), min_size=1, max_size=60), st.integers(1, 10)
)
def test_no_more_requests_are_under_way_than_there_are_clients(
    pairs: list[tuple[float, float]], clients: int
) -> None:
    due_s, latency_s = np.array(sorted(pairs)).T
    sent = waiting_clients(_requests(due_s, latency_s), clients)
    ends_s = due_s + latency_s
    for at in np.flatnonzero(sent):
        assert ((due_s[:at] <= due_s[at]) & (ends_s[:at] > due_s[at]) & sent[:at]).sum() < clients
    assert sent[0]
    assert waiting_clients(_requests(due_s, latency_s), due_s.size).all()


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0.001, 2)), min_size=1, max_size=60))
def test_enough_clients_are_the_fewest_that_suffice(pairs: list[tuple[float, float]]) -> None:
    due_s, latency_s = np.array(sorted(pairs)).T
    requests = _requests(due_s, latency_s)
    clients = enough_clients(requests)
    assert waiting_clients(requests, clients).mean() >= 1 - LEFT_OUT_SHARE
    if clients > 1:
        assert waiting_clients(requests, clients - 1).mean() < 1 - LEFT_OUT_SHARE

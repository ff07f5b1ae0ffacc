"""The uses of the published Queen clients, as scenarios that run with either release.

A scenario is a public coroutine function of one of the modules here: it gets a client and a unique name, and
its own name is its promise. `tests/wire/test_queen_client.py` runs them all.
"""

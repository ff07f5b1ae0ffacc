"""Measures Queenspark on this machine, and bare PostgreSQL beside it.

`python -m bench` starts an embedded PostgreSQL with default durability and a broker of its own, both on
a temporary folder, and loads them over HTTP: with `wrk` for throughput, with a small client of its own
for latency. Beside each figure stands what PostgreSQL does with the same rows, columns and indexes
through one connection, without HTTP.
"""

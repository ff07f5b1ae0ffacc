"""Measures Queenspark on this machine, compared with bare PostgreSQL.

`python -m bench` starts an embedded PostgreSQL with default durability and a broker of its own, both on
a temporary folder, and loads them over HTTP: with `wrk` for throughput, with a small client of its own
for latency. Each figure is compared with bare PostgreSQL: the same rows, columns and indexes
through one connection, without HTTP.
"""

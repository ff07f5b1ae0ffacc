"""The dashboard: a separate process and a client of the HTTP API like any other."""

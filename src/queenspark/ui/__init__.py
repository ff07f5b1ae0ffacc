"""The dashboard: a process of its own that talks to brokers over HTTP, like any other client."""

"""The demo: its command, the shop that it runs, the ledger of its counters, and the screen."""

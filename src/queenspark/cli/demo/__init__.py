"""The demo: its command, the shop that it runs, the ledger of what happened, and the screen that shows it."""

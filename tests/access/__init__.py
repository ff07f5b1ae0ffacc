"""Access control: who a caller is, and what they may do."""

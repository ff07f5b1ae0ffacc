"""Access control: the identity of a caller, and its rights."""

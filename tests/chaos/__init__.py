"""Faults at random in a whole system, and the proof that nothing was lost, doubled or computed wrongly."""

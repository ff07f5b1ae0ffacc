"""The parts of the streams query."""

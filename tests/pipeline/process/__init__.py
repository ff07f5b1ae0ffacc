"""The pipeline process."""

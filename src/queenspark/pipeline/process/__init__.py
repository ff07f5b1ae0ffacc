"""The pipeline process: leadership, supervision of its queries, and warm-up."""

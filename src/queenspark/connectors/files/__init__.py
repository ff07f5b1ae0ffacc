"""The connector `files`: JSON lines, CSV, Parquet and text, on any file system that pyarrow supports."""

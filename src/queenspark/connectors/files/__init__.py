"""The connector `files`: JSON lines, CSV, Parquet and text, on this machine or wherever pyarrow reaches."""

"""The rules of the data gate: rows in, checks out; no I/O, clock or environment."""

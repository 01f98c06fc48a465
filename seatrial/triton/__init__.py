"""The rules of serving with Triton: configuration, request schema, requests; no I/O, clock or environment."""

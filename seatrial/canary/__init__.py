"""The rules of the canary: counts in, decision out; no I/O, clock or environment."""

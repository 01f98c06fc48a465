"""The rules of the evaluation gate: scores in, checks out; no I/O, clock or environment."""

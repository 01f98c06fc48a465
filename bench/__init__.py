"""Measurements: `make bench` writes docs/benchmarks.md. Each number is taken beside what it is compared with."""

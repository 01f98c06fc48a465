"""The steps: one container each. A step never imports another."""

"""run_canary: traffic in steps, a decision on counted evidence, and the way back."""

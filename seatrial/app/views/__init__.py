"""What people see: pure functions of facts, and the two ways to follow a run."""

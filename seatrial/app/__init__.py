"""The side that a person meets: the command, the runner, the sandbox. In no image."""

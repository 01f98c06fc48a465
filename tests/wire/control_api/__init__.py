"""What a real API server answered about the two kinds that the control API knows."""

"""settle_release: however it ended, put right what is left and say what happened."""

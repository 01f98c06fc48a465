"""train_model: the owner's code makes a model; it sees training rows, and nothing else of ours."""

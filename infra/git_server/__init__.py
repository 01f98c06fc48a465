"""A git server for a cluster that has none of its own: the repository that resolve_release reads, over ssh and http."""

"""What a cluster is given: images, manifests, and the test cluster itself."""

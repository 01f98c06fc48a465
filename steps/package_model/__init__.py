"""package_model: the bundle, booted by the real Triton before anybody may build an image of it."""

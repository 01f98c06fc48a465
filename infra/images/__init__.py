"""Every image of seatrial from its Dockerfile, without docker: Debian by mmdebstrap, buildah, skopeo.

`python -m infra.images build | push | list | check`, run from the repository's root, as root, on Debian 12.
"""

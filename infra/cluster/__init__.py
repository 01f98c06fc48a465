"""A real single-node Kubernetes for tests, from programs alone: no docker, nothing left on the host.

    python -m infra.cluster build      every program, built from Go modules or found in the cache
    python -m infra.cluster up         the cluster, in namespaces of its own; again finds it
    python -m infra.cluster exec -- …  a command inside the cluster's network
    python -m infra.cluster down       ends it; with --wipe forgets what it stored

Network, mounts and processes live in namespaces that end with one process, the anchor. `places` says what is where.
"""

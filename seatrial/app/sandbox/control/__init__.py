"""The control API: what a release meets of Kubernetes, KServe and the gateway's controller, on this machine."""

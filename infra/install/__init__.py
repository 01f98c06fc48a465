"""Seatrial into the test cluster, as an operator would: an overlay of its own on top of overlays/dev, then kubectl.

    python -m infra.install              write .seatrial/cluster/overlay and apply it; again changes nothing
    python -m infra.install --write      only write it

`facts` is what is known of this cluster, `overlay` turns that into files, `apply` hands them to kubectl.
"""

"""The sandbox: everything that a release needs from outside, on this machine. See docs in `lifecycle`.

supervisord ─┬─ SeaweedFS (S3)  ─ MLflow  ─ Traefik  ─ control API
             └─ one keeper for each replica of each deployed version, and under it a Triton
"""

from seatrial.app.sandbox.lifecycle import Sandbox, down, find, up
from seatrial.app.sandbox.parts import Part, parts
from seatrial.app.sandbox.releases import releasing
from seatrial.app.sandbox.triton import install_triton

__all__ = ["Part", "Sandbox", "down", "find", "install_triton", "parts", "releasing", "up"]

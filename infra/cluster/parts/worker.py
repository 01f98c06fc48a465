"""The node: containerd, kubelet and kube-proxy, with their configuration files."""

from __future__ import annotations

import json

from infra.cluster import health
from infra.cluster.build import Programs
from infra.cluster.images import PAUSE
from infra.cluster.packages import which
from infra.cluster.parts.part import Part, flags, supervised, write
from infra.cluster.places import NODE, NODE_ADDRESS, POD_BRIDGE, POD_RANGE, REGISTRY, SERVICE_DNS, Place
from seatrial.errors import InvalidInput

_PODS_MAX = 200
"""The range of pod addresses holds 253."""


def containerd(place: Place, programs: Programs) -> Part:
    """Runs the containers; the cluster's registry is asked over plain http."""
    config = write(place.config / "containerd.toml", containerd_config(place, programs, _runc()))
    write(place.config / "registries" / REGISTRY / "hosts.toml", f'server = "http://{REGISTRY}"\n')
    write(place.config / "cni" / "10-pods.conflist", json.dumps(pod_network(place), indent=1))
    command = (programs.program("containerd", "containerd"), "--config", str(config))
    return Part(
        program=supervised(place, "containerd", command),
        healthy=lambda: health.listens(place.containerd_socket),
    )


def containerd_config(place: Place, programs: Programs, runc: str) -> str:
    """containerd.toml. Its scores may not be lowered: on some machines root itself may not."""
    return f"""\
version = 3
root = "{place.data}/containerd"
state = "{place.run}/containerd"
[grpc]
  address = "{place.containerd_socket}"
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "{PAUSE}"
  [plugins.'io.containerd.cri.v1.images'.registry]
    config_path = "{place.config}/registries"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = "runc"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
        BinaryName = "{runc}"
        SystemdCgroup = false
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["{programs.folders["cni"]}"]
    conf_dir = "{place.config}/cni"
[plugins.'io.containerd.grpc.v1.cri']
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
"""


def pod_network(place: Place) -> dict[str, object]:
    """One bridge for all pods, whose gateway is the node; nothing leads out of it."""
    ranges = [[{"subnet": POD_RANGE}]]
    addresses = {
        "type": "host-local",
        "dataDir": f"{place.run}/addresses",
        "ranges": ranges,
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {
        "type": "bridge",
        "bridge": POD_BRIDGE,
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": addresses,
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, ports]}


def kubelet(place: Place, programs: Programs) -> Part:
    """Runs the pods that are given to this node."""
    config = write(place.config / "kubelet.json", json.dumps(kubelet_config(place), indent=1))
    write(place.config / "resolv.conf", "nameserver 127.0.0.1\n")  # CoreDNS asks nobody: there is no way out
    values = {
        "config": config,
        "kubeconfig": place.config / "kubelet.kubeconfig",
        "hostname-override": NODE,
        "node-ip": NODE_ADDRESS,
        "root-dir": place.data / "kubelet",
        "cert-dir": place.data / "kubelet" / "pki",
    }
    command = (programs.program("kubernetes", "kubelet"), *flags(values))
    return Part(
        program=supervised(place, "kubelet", command),
        healthy=lambda: health.answers("http://127.0.0.1:10248/healthz"),
    )


def kubelet_config(place: Place) -> dict[str, object]:
    """KubeletConfiguration: nothing is reserved, no image is collected, and what the kernel refuses is let be."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_ADDRESS,
        "healthzBindAddress": "127.0.0.1",
        "cgroupRoot": place.cgroup,
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "failSwapOn": False,
        "featureGates": {"KubeletInUserNamespace": True},
        "oomScoreAdj": 0,
        "maxOpenFiles": 20000,
        "maxPods": _PODS_MAX,
        "containerRuntimeEndpoint": f"unix://{place.containerd_socket}",
        "clusterDNS": [SERVICE_DNS],
        "clusterDomain": "cluster.local",
        "resolvConf": f"{place.config}/resolv.conf",
        "authentication": {
            "anonymous": {"enabled": False},
            "x509": {"clientCAFile": f"{place.pki}/ca.crt"},
            "webhook": {"enabled": True},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{place.pki}/kubelet.crt",
        "tlsPrivateKeyFile": f"{place.pki}/kubelet.key",
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "imagefs.available": "1%",
            "nodefs.inodesFree": "1%",
        },
        "podLogsDir": f"{place.data}/pod-logs",
        "serializeImagePulls": False,
        "registryPullQPS": 0,
        "eventRecordQPS": 0,
        "volumePluginDir": f"{place.data}/kubelet/volume-plugins",
    }


def proxy(place: Place, programs: Programs) -> Part:
    """Makes services of addresses, by nftables inside the cluster's network."""
    config = write(place.config / "kube-proxy.json", json.dumps(proxy_config(place), indent=1))
    command = (programs.program("kubernetes", "kube-proxy"), f"--config={config}")
    return Part(
        program=supervised(place, "kube-proxy", command),
        healthy=lambda: health.answers("http://127.0.0.1:10256/healthz"),
    )


def proxy_config(place: Place) -> dict[str, object]:
    """KubeProxyConfiguration; the host's table of connections keeps its size."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": f"{place.config}/proxy.kubeconfig"},
        "hostnameOverride": NODE,
        "mode": "nftables",
        "clusterCIDR": POD_RANGE,
        "bindAddress": NODE_ADDRESS,
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "nodePortAddresses": [f"{NODE_ADDRESS}/32"],
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }


def _runc() -> str:
    runc = which("runc")
    if runc is None:
        raise InvalidInput("runc is missing: apt-get install runc")
    return runc

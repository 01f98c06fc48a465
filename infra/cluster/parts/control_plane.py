"""etcd, the API server, the controllers and the scheduler."""

from __future__ import annotations

from infra.cluster import health
from infra.cluster.build import Programs
from infra.cluster.parts.part import Part, flags, supervised
from infra.cluster.places import API, NODE_ADDRESS, SERVICE_RANGE, Place

_ETCD = "http://127.0.0.1:2379"
_ETCD_PEER = "http://127.0.0.1:2380"


def etcd(place: Place, programs: Programs) -> Part:
    """The API server's memory. It does not wait for the disk: a power cut may lose it, an end of the process not."""
    values = {
        "name": "etcd",
        "data-dir": place.data / "etcd",
        "unsafe-no-fsync": "true",
        "listen-client-urls": _ETCD,
        "advertise-client-urls": _ETCD,
        "listen-peer-urls": _ETCD_PEER,
        "initial-advertise-peer-urls": _ETCD_PEER,
        "initial-cluster": f"etcd={_ETCD_PEER}",
    }
    command = (programs.program("kubernetes", "etcd"), *flags(values))
    return Part(program=supervised(place, "etcd", command), healthy=lambda: health.answers(f"{_ETCD}/health"))


def apiserver(place: Place, programs: Programs) -> Part:
    """The Kubernetes API. It takes its time to end and needs none: what it was told lies in etcd."""
    pki = place.pki
    values = {
        "etcd-servers": _ETCD,
        "bind-address": NODE_ADDRESS,
        "advertise-address": NODE_ADDRESS,
        "secure-port": 6443,
        "kubelet-preferred-address-types": "InternalIP",
        "service-cluster-ip-range": SERVICE_RANGE,
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "anonymous-auth": "false",
        "allow-privileged": "true",
        "endpoint-reconciler-type": "lease",
        "client-ca-file": pki / "ca.crt",
        "tls-cert-file": pki / "apiserver.crt",
        "tls-private-key-file": pki / "apiserver.key",
        "kubelet-client-certificate": pki / "apiserver-kubelet.crt",
        "kubelet-client-key": pki / "apiserver-kubelet.key",
        "kubelet-certificate-authority": pki / "ca.crt",
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "service-account-key-file": pki / "sa.pub",
        "service-account-signing-key-file": pki / "sa.key",
        "requestheader-client-ca-file": pki / "front.crt",
        "requestheader-allowed-names": "front-proxy-client",
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "proxy-client-cert-file": pki / "front-proxy.crt",
        "proxy-client-key-file": pki / "front-proxy.key",
    }
    command = (programs.program("kubernetes", "kube-apiserver"), *flags(values))
    return Part(
        program=supervised(place, "kube-apiserver", command, stop_s=3),
        healthy=lambda: health.answers(f"{API}/readyz", health.administrator(pki)),
    )


def controller_manager(place: Place, programs: Programs) -> Part:
    """Kubernetes' own controllers."""
    values = {
        **_caller(place, "controller-manager"),
        "use-service-account-credentials": "true",
        "root-ca-file": place.pki / "ca.crt",
        "service-account-private-key-file": place.pki / "sa.key",
        "cluster-signing-cert-file": place.pki / "ca.crt",
        "cluster-signing-key-file": place.pki / "ca.key",
        "service-cluster-ip-range": SERVICE_RANGE,
    }
    command = (programs.program("kubernetes", "kube-controller-manager"), *flags(values))
    return Part(
        program=supervised(place, "kube-controller-manager", command),
        healthy=lambda: health.answers("https://127.0.0.1:10257/healthz"),
    )


def scheduler(place: Place, programs: Programs) -> Part:
    """Gives pods their node."""
    command = (programs.program("kubernetes", "kube-scheduler"), *flags(_caller(place, "scheduler")))
    return Part(
        program=supervised(place, "kube-scheduler", command),
        healthy=lambda: health.answers("https://127.0.0.1:10259/healthz"),
    )


def _caller(place: Place, user: str) -> dict[str, object]:
    kubeconfig = place.config / f"{user}.kubeconfig"
    return {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": "127.0.0.1",
        "leader-elect": "false",
    }

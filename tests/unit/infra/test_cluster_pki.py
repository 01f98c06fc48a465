"""Who is who in the cluster."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from cryptography import x509

from infra.cluster import pki
from infra.cluster.kubeconfigs import kubeconfig
from infra.cluster.places import NODE_ADDRESS, SERVICE_API


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pki")
    pki.ensure(made)
    return made


def certificate(folder: Path, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes())


def hosts(folder: Path, name: str) -> set[str]:
    names = certificate(folder, name).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = {str(address) for address in names.get_values_for_type(x509.IPAddress)}
    return addresses | set(names.get_values_for_type(x509.DNSName))


@pytest.mark.parametrize(
    ("name", "subject"),
    [
        ("admin", "CN=admin,O=system:masters"),
        ("kubelet", "CN=system:node:node1,O=system:nodes"),
        ("controller-manager", "CN=system:kube-controller-manager"),
        ("scheduler", "CN=system:kube-scheduler"),
        ("proxy", "CN=system:kube-proxy"),
    ],
)
def test_each_part_is_the_user_and_the_group_that_kubernetes_expects(folder: Path, name: str, subject: str) -> None:
    assert certificate(folder, name).subject.rfc4514_string() == subject


def test_the_api_server_is_known_by_its_service_and_by_the_node(folder: Path) -> None:
    wanted = {NODE_ADDRESS, SERVICE_API, "127.0.0.1", "localhost", "kubernetes.default.svc.cluster.local"}
    assert wanted <= hosts(folder, "apiserver")


def test_the_front_proxy_has_an_authority_of_its_own(folder: Path) -> None:
    client = certificate(folder, "front-proxy")
    client.verify_directly_issued_by(certificate(folder, "front"))
    with pytest.raises(ValueError, match="Issuer"):
        client.verify_directly_issued_by(certificate(folder, "ca"))


def test_keys_are_for_their_owner_alone(folder: Path) -> None:
    assert {path.stat().st_mode & 0o077 for path in folder.glob("*.key")} == {0}


def test_a_second_time_nothing_is_made_anew(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    pki.ensure(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_kubeconfig_holds_all_that_it_needs(folder: Path) -> None:
    made = kubeconfig(folder, "admin")
    (user,) = made["users"]
    assert base64.b64decode(user["user"]["client-certificate-data"]) == (folder / "admin.crt").read_bytes()
    (cluster,) = made["clusters"]
    assert base64.b64decode(cluster["cluster"]["certificate-authority-data"]) == (folder / "ca.crt").read_bytes()
    assert made["current-context"] == "seatrial-test"

"""The cluster's certificates: who each part is. Made once per cluster and kept; a wiped cluster gets new ones."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from infra.cluster.places import NODE, NODE_ADDRESS, SERVICE_API

_VALID_DAYS: Final = 365
_PEM: Final = serialization.Encoding.PEM
CLIENT: Final = ExtendedKeyUsageOID.CLIENT_AUTH
SERVER: Final = ExtendedKeyUsageOID.SERVER_AUTH


@dataclass(frozen=True)
class Subject:
    """Whom a certificate names and what it is good for."""

    name: str
    group: str = ""
    uses: tuple[x509.ObjectIdentifier, ...] = (CLIENT,)
    hosts: tuple[str, ...] = ()
    """DNS names and addresses."""
    issuer: str = "ca"


AUTHORITIES: Final = ("ca", "front")
"""The cluster's own, and the one that vouches for the API server towards what stands behind it."""

SUBJECTS: Final = {
    "apiserver": Subject(
        "kube-apiserver",
        uses=(SERVER,),
        hosts=(
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "localhost",
            "127.0.0.1",
            NODE_ADDRESS,
            SERVICE_API,
        ),
    ),
    "apiserver-kubelet": Subject("kube-apiserver-kubelet-client", group="seatrial:kubelet-clients"),
    "front-proxy": Subject("front-proxy-client", issuer="front"),
    "kubelet": Subject(
        f"system:node:{NODE}", group="system:nodes", uses=(CLIENT, SERVER), hosts=(NODE, NODE_ADDRESS, "127.0.0.1")
    ),
    "admin": Subject("admin", group="system:masters"),
    "controller-manager": Subject("system:kube-controller-manager"),
    "scheduler": Subject("system:kube-scheduler"),
    "proxy": Subject("system:kube-proxy"),
    "kserve": Subject("kserve-controller", group="system:masters"),
    "traefik": Subject("traefik", group="system:masters"),
    "kserve-webhook": Subject("kserve-webhook", uses=(SERVER,), hosts=("localhost", "127.0.0.1")),
}
"""File name → subject. Kubernetes reads the name as the user and the group as the group."""


def ensure(folder: Path) -> None:
    """Every authority, certificate and the service accounts' signing key lie in `folder` as `<name>.crt` and `.key`."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in AUTHORITIES:
        if not (folder / f"{name}.crt").exists():
            key = _new_key(folder / f"{name}.key")
            _write_certificate(folder / f"{name}.crt", _authority(name, key))
    for name, subject in SUBJECTS.items():
        if not (folder / f"{name}.crt").exists():
            issuer = x509.load_pem_x509_certificate((folder / f"{subject.issuer}.crt").read_bytes())
            signer = _load_key(folder / f"{subject.issuer}.key")
            key = _new_key(folder / f"{name}.key")
            _write_certificate(folder / f"{name}.crt", _certificate(subject, key, issuer, signer))
    if not (folder / "sa.pub").exists():
        public = _new_key(folder / "sa.key").public_key()
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        (folder / "sa.pub").write_bytes(public.public_bytes(_PEM, form))


def name_of(subject: Subject) -> x509.Name:
    """The distinguished name: the group as organisation, the user as common name."""
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, subject.group)] if subject.group else []
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, subject.name)])


def alternative_names(hosts: tuple[str, ...]) -> list[x509.GeneralName]:
    """Hosts as a certificate names them: addresses as addresses, all else as DNS names."""
    names: list[x509.GeneralName] = []
    for host in hosts:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    return names


def _authority(name: str, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    builder = (
        _begun(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"seatrial test cluster {name}")]), key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs=True), critical=True)
    )
    own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"seatrial test cluster {name}")])
    return builder.issuer_name(own).sign(key, hashes.SHA256())


def _certificate(
    subject: Subject, key: ec.EllipticCurvePrivateKey, issuer: x509.Certificate, signer: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    builder = (
        _begun(name_of(subject), key)
        .issuer_name(issuer.subject)
        .add_extension(_key_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(subject.uses), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if subject.hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternative_names(subject.hosts)), critical=False)
    return builder.sign(signer, hashes.SHA256())


def _begun(name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + dt.timedelta(days=_VALID_DAYS))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_encipherment=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _new_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = ec.generate_private_key(ec.SECP256R1())
    form = serialization.PrivateFormat.PKCS8
    path.touch(mode=0o600)
    path.write_bytes(key.private_bytes(_PEM, form, serialization.NoEncryption()))
    return key


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{path} holds another kind of key than was written")
    return key


def _write_certificate(path: Path, certificate: x509.Certificate) -> None:
    path.write_bytes(certificate.public_bytes(_PEM))

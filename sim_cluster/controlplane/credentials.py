"""Keys and certificates of one short-lived control plane."""

from __future__ import annotations

import datetime as dt
import ipaddress
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path

_VALID = dt.timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """The files that the API server is started with, and the administrator's token."""

    authority: Path
    certificate: Path
    key: Path
    service_account_key: Path
    tokens: Path
    admin_token: str


def create(folder: Path, *, service_ip: str) -> Credentials:
    """Make a certificate authority, a certificate for loopback and `service_ip`, and a token."""
    authority_key, server_key = _key(), _key()
    authority_name = _name("sim-cluster-ca")
    authority = (
        _builder(authority_name, authority_name, authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_signing_usage(), critical=True)
        .add_extension(
            x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False
        )
        .sign(authority_key, hashes.SHA256())
    )
    names = [x509.DNSName(name) for name in ("localhost", "kubernetes", "kubernetes.default.svc")]
    addresses = [x509.IPAddress(ipaddress.ip_address(ip)) for ip in ("127.0.0.1", service_ip)]
    issuer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    server = (
        _builder(_name("sim-cluster"), authority_name, server_key)
        .add_extension(x509.SubjectAlternativeName([*names, *addresses]), critical=False)
        .add_extension(issuer_id, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    token = secrets.token_hex(16)
    return Credentials(
        authority=_write(folder / "ca.crt", authority.public_bytes(serialization.Encoding.PEM)),
        certificate=_write(folder / "server.crt", server.public_bytes(serialization.Encoding.PEM)),
        key=_write(folder / "server.key", _pem(server_key)),
        service_account_key=_write(folder / "sa.key", _pem(_key())),
        tokens=_write(folder / "tokens.csv", f"{token},admin,admin,system:masters\n".encode()),
        admin_token=token,
    )


def _key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + _VALID)
    )


def _signing_usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _write(path: Path, content: bytes) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(content)
    return path

"""Certificates that tests make: of an authority of their own, for this machine or another host."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


@dataclass(frozen=True)
class Authority:
    """Signs certificates. `file` is what clients trust."""

    folder: Path
    name: str = "authority"

    def __post_init__(self) -> None:
        object.__setattr__(self, "_key", ec.generate_private_key(ec.SECP256R1()))
        own = self._signed(self._key, self.name, [], is_authority=True)  # type: ignore[attr-defined]
        self.file.write_bytes(own.public_bytes(Encoding.PEM))

    @property
    def file(self) -> Path:
        """Its certificate, in PEM form."""
        return self.folder / f"{self.name}.pem"

    def server(self, *, host: str = "", days: int = 1) -> ssl.SSLContext:
        """What a server shows: a certificate for 127.0.0.1, or for another host. `days` below 0: it
        has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        address = x509.IPAddress(IPv4Address("127.0.0.1"))
        names: list[x509.GeneralName] = [x509.DNSName(host) if host else address]
        made = self._signed(key, "server", names, days=days)
        file = self.folder / f"{self.name}-{host or 'here'}-{days}.pem"
        file.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + made.public_bytes(Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def _signed(
        self,
        key: ec.EllipticCurvePrivateKey,
        name: str,
        names: list[x509.GeneralName],
        *,
        days: int = 1,
        is_authority: bool = False,
    ) -> x509.Certificate:
        own: ec.EllipticCurvePrivateKey = self._key  # type: ignore[attr-defined]
        now = datetime.now(UTC)
        made = x509.CertificateBuilder(
            _named(self.name),
            _named(name),
            key.public_key(),
            x509.random_serial_number(),
            now - timedelta(days=3),
            now + timedelta(days=days),
        ).add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        made = made.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
        ).add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(own.public_key()), critical=False
        )
        if names:
            made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return made.sign(own, hashes.SHA256())


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])

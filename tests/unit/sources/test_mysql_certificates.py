"""The file of a TLS authority is read without waiting, and what is wrong with it is said with its
path."""

from __future__ import annotations

import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from replicators.connectors.mysql.tls import CERTIFICATE_BYTES
from replicators.connectors.problems.errors import ReplicationError
from replicators.sources.mysql import connections
from replicators.sources.mysql.params import MysqlParams


def _context(path: Path | str) -> ssl.SSLContext | None:
    params = MysqlParams(host="h", user="u", tls="verify-full", tls_ca=str(path))
    return connections.tls_context(params)


def _certificate() -> str:
    """One that says of itself whom it is from."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "of a test")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1)
    ).add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


def test_a_file_of_certificates_is_trusted_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_text(f"# für uns\n{_certificate()}")
    context = _context(path)
    assert context is not None and context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname and context.cert_store_stats()["x509_ca"] == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pipe", "is not a regular file"),
        ("folder", "is not a regular file"),
        ("text", "holds no certificates in PEM form"),
        ("empty", "is empty"),
        ("large", "is too large"),
        ("missing", "is not there"),
    ],
)
def test_what_is_no_file_of_certificates_is_named(tmp_path: Path, name: str, said: str) -> None:
    """Guards against a pipe, which held the request for ever, and an empty file, in whose place the
    machine's own would be trusted."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("nothing of the kind: ü")
    (tmp_path / "empty").touch()
    with (tmp_path / "large").open("wb") as file:
        file.truncate(CERTIFICATE_BYTES + 1)
    with pytest.raises(ReplicationError) as caught:
        _context(tmp_path / name)
    assert caught.value.code == "source:tls-file"
    text = caught.value.message.text
    assert said in text and f"`{tmp_path}/{name}`" in text

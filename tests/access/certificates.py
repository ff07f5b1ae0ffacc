"""A certificate authority for tests, and certificates of it."""

import shutil
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


class Authority:
    """Signs certificates for 127.0.0.1, and for clients."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("a CA of tests")
        self.file = folder / "ca.pem"
        own = _builder(self._name, self._name, self._key)
        own = own.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        usage = x509.KeyUsage(
            digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False,
            key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False,
            decipher_only=False,
        )  # fmt: skip
        own = own.add_extension(usage, critical=True)
        self._identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        own = own.add_extension(self._identifier, critical=False)
        self.file.write_bytes(own.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))

    def issue(self, name: str) -> tuple[Path, Path]:
        """The files of a new certificate and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(name), self._name, key)
        builder = builder.add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        identifier = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(self._identifier)
        builder = builder.add_extension(identifier, critical=False)
        certificate, secret = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        secret.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        certificate.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))
        return certificate, secret


def replace(source: Path, target: Path) -> None:
    """Replace a file atomically, as a renewal does."""
    copied = target.with_suffix(".new")
    shutil.copy(source, copied)
    copied.replace(target)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
    )

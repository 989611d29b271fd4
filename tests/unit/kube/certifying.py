"""Certificates for servers of tests."""

import datetime as dt
import pathlib

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def certify(directory: pathlib.Path, host: str) -> tuple[pathlib.Path, pathlib.Path]:
    """A self-signed certificate, without the extensions that strict checks of Python ≥ 3.13 ask for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = directory / f"{host}.crt", directory / f"{host}.key"
    for path, data in zip(files, _pem(key, certificate), strict=True):
        path.write_bytes(data)
    return files


def _pem(key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> tuple[bytes, bytes]:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private

"""Real servers with the users that a farm is deployed with, over plain TCP or over TLS."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
import redis
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from evalfarm.embedded import find_server

ROOT = Path(__file__).parents[2]
PATIENCE_S = 180.0


@dataclass(frozen=True)
class Server:
    """A server of a test's own, and the secrets that it was made with."""

    secrets: Path
    admin: redis.Redis  #: may do everything, as no user of a deployment
    port: int

    def url(self, user: str) -> str:
        return (self.secrets / f"REDIS_URL_{user}").read_text(encoding="utf-8")

    def password(self, user: str) -> str:
        return self.url(user).partition("@")[0].rpartition(":")[2]

    def refused(self) -> list[tuple[str, str]]:
        """What was refused to whom."""
        return [(entry["username"], entry["object"]) for entry in self.admin.acl_log()]


@dataclass(frozen=True)
class Certificates:
    """An authority of a test's own, and a server's certificate that it signed."""

    authority: Path
    certificate: Path
    key: Path


@contextmanager
def server_with_users(folder: Path, certificates: Certificates | None = None) -> Iterator[Server]:
    """A server with the shipped users, append-only and never evicting; with certificates it speaks TLS alone."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    tls = certificates is not None
    address = f"127.0.0.1:{port}/0" + (f"?ssl_ca_certs={certificates.authority}" if certificates else "")
    made = [sys.executable, "deploy/make_secrets.py", str(folder / "secrets")]
    subprocess.run([*made, "--redis", f"{'rediss' if tls else 'redis'}://{{login}}@{address}"], cwd=ROOT, check=True)
    acl = folder / "users.acl"
    # Somebody must be able to read what was refused, and to plant faults.
    acl.write_text((folder / "secrets/users.acl").read_text() + "user admin on >admin ~* &* +@all\n")
    options = {"bind": "127.0.0.1", "aclfile": str(acl), "dir": str(folder), "save": "", "appendonly": "yes"}
    options |= {"maxmemory-policy": "noeviction"} | (
        _over_tls(port, certificates) if certificates else {"port": str(port)}
    )
    program = server_with_tls(folder) if tls else find_server()
    with (folder / "server.log").open("wb") as log:
        argv = [program, *(word for name, value in options.items() for word in (f"--{name}", value))]
        process = subprocess.Popen(argv, stdout=log, stderr=log)
    known = (
        {"ssl": True, "ssl_ca_certs": str(certificates.authority), "ssl_check_hostname": False} if certificates else {}
    )
    try:
        with redis.Redis(
            port=port, host="127.0.0.1", username="admin", password="admin", decode_responses=True, **known
        ) as admin:
            until(lambda: _answers(admin, process, folder / "server.log"))
            yield Server(folder / "secrets", admin, port)
    finally:
        process.terminate()
        process.wait()


def _over_tls(port: int, certificates: Certificates) -> dict[str, str]:
    """As docs/deployment.md has it: no port without TLS, and no certificates of clients, who have passwords."""
    return {
        "port": "0",
        "tls-port": str(port),
        "tls-cert-file": str(certificates.certificate),
        "tls-key-file": str(certificates.key),
        "tls-ca-cert-file": str(certificates.authority),
        "tls-auth-clients": "no",
    }


def server_with_tls(folder: Path) -> str:
    """A server's program that speaks TLS, which the one that evalfarm brings does not.

    Debian's redis-tools has one under the name of its check: a server does what the name says that it is called by.
    Without any the test is skipped, and says what to install; in continuous integration, where CI is set, it fails.
    """
    for name in ("redis-check-rdb", "valkey-check-rdb"):
        if found := shutil.which(name):
            program = folder / name.replace("check-rdb", "server")
            program.symlink_to(found)
            return str(program)
    told = "no Redis with TLS is installed: on Debian and Ubuntu, apt-get install redis-tools"
    if os.environ.get("CI"):
        pytest.fail(told)
    pytest.skip(told)


def make_certificates(folder: Path, address: str = "127.0.0.1") -> Certificates:
    """A new authority, and a certificate by it for an address; both for a day."""
    folder.mkdir(exist_ok=True)
    root_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    root_name, name = (
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, told)]) for told in ("test authority", "test server")
    )
    now = datetime.now(UTC)

    def unsigned(subject: x509.Name, whose: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        builder = x509.CertificateBuilder(root_name, subject, whose.public_key(), x509.random_serial_number())
        return builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=1))

    root = unsigned(root_name, root_key).add_extension(x509.BasicConstraints(True, 0), critical=True)
    root = root.add_extension(x509.SubjectKeyIdentifier.from_public_key(root_key.public_key()), critical=False)
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    authority = root.add_extension(usage, critical=True).sign(root_key, hashes.SHA256())
    named = unsigned(name, key).add_extension(
        x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False
    )
    named = named.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key()), critical=False
    )
    files = Certificates(folder / "ca.pem", folder / "server.pem", folder / "server.key")
    files.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    files.certificate.write_bytes(named.sign(root_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    files.key.write_bytes(key.private_bytes(encoding, form, serialization.NoEncryption()))
    return files


def _answers(client: redis.Redis, process: "subprocess.Popen[bytes]", log: Path) -> bool:
    assert process.poll() is None, log.read_text(encoding="utf-8")
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


def until(look: Callable[[], object]) -> None:
    """Waits for it."""
    deadline = time.monotonic() + PATIENCE_S
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.05)

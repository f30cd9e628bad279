"""Kafka brokers and a schema registry for the tests, each a local process with a folder and ports
of its own."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import struct
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import fastavro
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from demo.embedded import EmbeddedServer
from demo.postgres import HOST, free_port
from replicators.targets.kafka.params import MECHANISMS, PLAIN, PROTOCOLS, SASL, SASL_TLS
from setup.machine import java_home
from setup.steps import APICURIO, KAFKA
from tests.demos import until

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xss512k")
_NUMBERS = itertools.count(1)


class KafkaError(RuntimeError):
    """The broker or the registry did not start. The text ends with its log."""


def _java() -> str:
    home = java_home()
    return str(home / "bin" / "java") if home else "java"


@dataclass
class KafkaBroker(EmbeddedServer):
    """One node that is broker and controller. `options` are settings of `server.properties`.

    `quorum`: the ports of the controllers of all nodes, by node; empty: this node is alone.
    """

    node: int = 1
    quorum: Mapping[int, int] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)

    label = "kafka"
    title = "Kafka"
    start_seconds = 60.0
    error = KafkaError

    @property
    def address(self) -> str:
        """Host and port."""
        return f"{HOST}:{self.port}"

    def _command(self) -> Sequence[str]:
        if not self.quorum:
            self.quorum = {self.node: free_port()}
        settings = self.home / "server.properties"
        settings.write_text("".join(f"{k}={v}\n" for k, v in self._settings().items()))
        start = [_java(), "-Xmx320m", *_JAVA, "-cp", f"{KAFKA}/*"]
        if (self.home / "data" / "meta.properties").exists():
            return [*start, "kafka.Kafka", str(settings)]
        form = " ".join([*start, "kafka.tools.StorageTool", "format", "-t", CLUSTER])
        run = " ".join([*start, "kafka.Kafka"])
        return ["sh", "-c", f"set -f; {form} -c {settings} && exec {run} {settings}"]

    def _settings(self) -> dict[str, str]:
        several = str(min(3, len(self.quorum)))
        return {
            "process.roles": "broker,controller",
            "node.id": str(self.node),
            "controller.quorum.voters": ",".join(
                f"{node}@{HOST}:{port}" for node, port in self.quorum.items()
            ),
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://{HOST}:{self.quorum[self.node]}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.home / "data"),
            "num.partitions": "3",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": several,
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": several,
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
            "log.retention.ms": "-1",
            **self.options,
        }

    def _answers(self) -> bool:
        return self.members() > 0

    def members(self) -> int:
        """How many brokers this one knows; 0 where it does not answer."""
        asked: dict[str, str | int | float | bool] = {
            "bootstrap.servers": self.address,
            "log_level": 0,
        }
        with contextlib.suppress(KafkaException):
            return len(AdminClient(asked).list_topics(timeout=3.0).brokers)
        return 0


@dataclass
class SecuredBroker(KafkaBroker):
    """A broker with logins, encryption and rights. It has a listener for each kind of security, in
    `ports`. Who comes without a login may do everything. The user `PEOPLE` may do what `allow`
    said; each mechanism knows the user."""

    ports: dict[str, int] = field(default_factory=dict)

    @property
    def ca_file(self) -> str:
        """The certificate that signs the broker's."""
        return str(self.home / "ca.pem")

    def at(self, security: str) -> str:
        """The address for a kind of security."""
        return f"{HOST}:{self.ports[security]}"

    def _command(self) -> Sequence[str]:
        for name in (PLAIN, *PROTOCOLS):
            self.ports[name] = self.port if name == PLAIN else self.ports.get(name) or free_port()
        if not (self.home / "ca.pem").exists():
            signed(self.home)
        return super()._command()

    def _settings(self) -> dict[str, str]:
        found = super()._settings()
        places = ",".join(f"{PROTOCOLS[n]}://{HOST}:{port}" for n, port in self.ports.items())
        control = f"CONTROLLER://{HOST}:{self.quorum[self.node]}"
        maps = [f"{PROTOCOLS[n]}:{PROTOCOLS[n]}" for n in self.ports]
        logins = {
            f"listener.name.{PROTOCOLS[n].lower()}.{module.split('.')[0]}.sasl.jaas.config": (
                f"org.apache.kafka.common.security.{where} required{users};"
            )
            for n in (SASL, SASL_TLS)
            for module, where, users in (
                ("plain.", "plain.PlainLoginModule", f' user_{PERSON}="{SECRET}"'),
                ("scram-sha-256.", "scram.ScramLoginModule", ""),
                ("scram-sha-512.", "scram.ScramLoginModule", ""),
            )
        }
        return {
            **found,
            **logins,
            "listeners": f"{places},{control}",
            "advertised.listeners": places,
            "listener.security.protocol.map": ",".join([*maps, "CONTROLLER:PLAINTEXT"]),
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.home / "broker.pem"),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }

    def add_user(self) -> None:
        """Tell the mechanisms SCRAM the user's password."""
        admin = self._admin()
        for kind in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            info = ScramCredentialInfo(kind, 4096)
            asked: list[Any] = [UserScramCredentialUpsertion(PERSON, info, SECRET.encode())]
            admin.alter_user_scram_credentials(asked)[PERSON].result(30)

    def allow(self, begin: str, *what: AclOperation) -> None:
        """Let the user do this with topics whose names begin so."""
        admin = self._admin()
        for one in admin.create_acls(_rights(AclBinding, begin, what)).values():
            one.result(30)

    def forbid(self, begin: str, *what: AclOperation) -> None:
        """Take it back."""
        admin = self._admin()
        for one in admin.delete_acls(_rights(AclBindingFilter, begin, what)).values():
            one.result(30)

    def _admin(self) -> AdminClient:
        """A client that may do everything. Whoever asks it has to keep it."""
        return AdminClient({"bootstrap.servers": self.address, "log_level": 0})


def set_limit(servers: str, topic: str, size: int) -> None:
    """Let a topic take messages of this size."""
    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    asked = [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])]
    admin = AdminClient({"bootstrap.servers": servers})
    for one in admin.incremental_alter_configs(asked).values():
        one.result(30)


PERSON, SECRET = "ann", "s3cret-of-ann"


def _rights(kind: Any, begin: str, what: Sequence[AclOperation]) -> list[Any]:
    where = (ResourceType.TOPIC, begin, ResourcePatternType.PREFIXED, f"User:{PERSON}", "*")
    return [kind(*where, one, AclPermissionType.ALLOW) for one in what]


def signed(folder: Path) -> None:
    """A certificate of an authority of its own, and one for the broker that it signed."""
    now = datetime.now(UTC)
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, n)]) for n in ("test ca", HOST)]

    def made(subject: int, *, is_ca: bool) -> x509.Certificate:
        place = x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))])
        return (
            x509.CertificateBuilder()
            .subject_name(names[subject])
            .issuer_name(names[0])
            .public_key(keys[subject].public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=2))
            .add_extension(x509.BasicConstraints(is_ca, None), critical=True)
            .add_extension(place, critical=False)
            .sign(keys[0], hashes.SHA256())
        )

    form = serialization.Encoding.PEM
    ca, own = made(0, is_ca=True), made(1, is_ca=False)
    private = keys[1].private_bytes(
        form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "ca.pem").write_bytes(ca.public_bytes(form))
    (folder / "broker.pem").write_bytes(private + own.public_bytes(form) + ca.public_bytes(form))


@contextmanager
def kafka_cluster(nodes: int = 3, **options: str) -> Iterator[list[KafkaBroker]]:
    """Several nodes of one cluster. The first half that starts waits for the others. The threads
    that start them stay: a server ends with the thread that started it."""
    quorum = {node: free_port() for node in range(1, nodes + 1)}
    brokers = [
        KafkaBroker(port=free_port(), node=n, quorum=quorum, options=options) for n in quorum
    ]
    with ThreadPoolExecutor(nodes) as pool:
        try:
            list(pool.map(lambda broker: broker.start(), brokers))
            until(lambda: brokers[0].members() == nodes, "the brokers do not all answer", 60.0)
            yield brokers
        finally:
            for broker in brokers:
                broker.kill()
                broker.close()


@dataclass
class SchemaRegistry(EmbeddedServer):
    """Apicurio Registry, in memory."""

    _schemas: dict[int, Any] = field(default_factory=dict, init=False, repr=False)

    label = "registry"
    title = "The schema registry"
    start_seconds = 90.0
    error = KafkaError

    @property
    def url(self) -> str:
        """The address of the API that Confluent's clients speak."""
        return f"http://{HOST}:{self.port}/apis/ccompat/v7"

    def _command(self) -> Sequence[str]:
        jar = next(APICURIO.glob("*-runner.jar"))
        where = [f"-Dquarkus.http.host={HOST}", f"-Dquarkus.http.port={self.port}"]
        return [_java(), "-Xmx320m", *_JAVA, *where, "-jar", str(jar)]

    def _environment(self) -> Mapping[str, str]:
        return {**os.environ, "QUARKUS_LOG_LEVEL": "WARN"}

    def decoded(self, data: bytes) -> Any:
        """A key or a value, by the schema that the registry has for its number."""
        zero, number = struct.unpack(">bI", data[:5])
        assert zero == 0
        return fastavro.schemaless_reader(io.BytesIO(data[5:]), self._schema(number), None)

    def _schema(self, number: int) -> Any:
        if number not in self._schemas:
            with urllib.request.urlopen(f"{self.url}/schemas/ids/{number}", timeout=10) as answer:
                schema = json.loads(json.load(answer)["schema"])
            self._schemas[number] = fastavro.parse_schema(schema)
        return self._schemas[number]

    def _answers(self) -> bool:
        with contextlib.suppress(OSError, urllib.error.URLError):
            asked = urllib.request.urlopen(f"{self.url}/subjects", timeout=2.0)
            with asked as answer:
                return bool(answer.status == 200)
        return False


def fresh_prefix() -> str:
    """A prefix of topics and subjects that no other test has."""
    return f"t{os.getpid()}-{next(_NUMBERS)}."

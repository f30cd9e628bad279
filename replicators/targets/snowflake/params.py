"""Parameters of a Snowflake target, as a person fills them in; no connection is made here."""

from __future__ import annotations

import re
from dataclasses import dataclass

from replicators.connectors.addresses import Place, Url
from replicators.connectors.params import InvalidParams, param
from replicators.connectors.server_fields import password
from replicators.connectors.view_fields import current_views, view_suffix

MERGE_SECONDS = 300.0
"""The time between two merges of a table. A warehouse that resumes is billed for a minute."""
LONGEST = 255
_ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+){0,3}")
_KEY = re.compile(r"\s*-----BEGIN (ENCRYPTED )?PRIVATE KEY-----[A-Za-z0-9+/=\s]+-----END \1?", re.A)
_EXACT = "exactly as Snowflake shows it, mostly in capital letters"


def _account_fault(text: str) -> str:
    return "" if _ACCOUNT.fullmatch(text) else "must look like myorg-myaccount, without a host name"


def _name_fault(text: str) -> str:
    return f"must have at most {LONGEST} characters" if len(text) > LONGEST else ""


def _endpoint_fault(text: str) -> str:
    try:
        url = Url.parse(text) if text else None
    except ValueError as err:
        return str(err)
    if url is None or (url.scheme in ("http", "https") and url.host and url.path in ("", "/")):
        return ""
    return "must begin with https:// (an emulator's with http://), and have no path"


@dataclass(frozen=True, slots=True)
class SnowflakeParams:
    """An account, how to sign in, and where the tables lie."""

    account: str = param(
        "Account", help="Its identifier: myorg-myaccount", addresses=True, check=_account_fault
    )
    user: str = param("User", help="A user of type SERVICE, with a role.", addresses=True)
    database: str = param("Database", help=f"It must exist. Its name, {_EXACT}.", check=_name_fault)
    warehouse: str = param(
        "Warehouse", help=f"It loads and merges. Its name, {_EXACT}.", is_movable=True
    )
    private_key: str = param(
        "Private key",
        help="The content of the file rsa_key.p8 (PKCS 8, PEM). Empty: the password is used.",
        default="",
        secret=True,
    )
    passphrase: str = param(
        "Passphrase of the key", help="Where the key is encrypted.", default="", secret=True
    )
    password: str = password()
    role: str = param(
        "Role", help=f"Empty: the user's own. Its name, {_EXACT}.", default="", is_movable=True
    )
    schema: str = param(
        "Schema",
        help=f"Where the tables appear, {_EXACT}; empty: one for each schema of the source.",
        default="",
        check=_name_fault,
    )
    suspends: bool = param(
        "Suspend the warehouse after each merge",
        help="Otherwise it is suspended after its own AUTO_SUSPEND. Not for a warehouse that other "
        "programs use.",
        default=False,
    )
    endpoint: str = param(
        "Endpoint",
        help="Only for a private link or an emulator. An emulator's begins with http://.",
        default="",
        addresses=True,
        is_movable=True,
        check=_endpoint_fault,
    )
    current_views: bool = current_views()
    view_suffix: str = view_suffix()

    def __post_init__(self) -> None:
        if self.private_key and not _KEY.match(self.private_key):
            raise InvalidParams({"private_key": "must be a private key in PEM form (PKCS 8)"})
        if not self.private_key and not self.password:
            raise InvalidParams({"private_key": "give a private key or a password"})

    @property
    def url(self) -> Url:
        """Where the service is asked."""
        return Url.parse(self.endpoint or f"https://{self.account}.snowflakecomputing.com")

    @property
    def port(self) -> int:
        """The port of `url`."""
        return self.url.port or (80 if self.url.scheme == "http" else 443)


def places(params: SnowflakeParams) -> tuple[Place, ...]:
    """The service, or the private endpoint."""
    label = "Endpoint" if params.endpoint else "Account"
    return (Place("host", params.url.host, label, params.port),)

"""Opens a client of Google's library, with the credentials that the params name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from replicators.targets.bigquery.params import BigQueryParams

if TYPE_CHECKING:
    from google.auth.credentials import Credentials
    from google.cloud import bigquery

SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
"""One scope: load jobs that read from a bucket need more than that of BigQuery."""
AGENT = "replicators"


def credentials_of(params: BigQueryParams) -> Credentials:
    """The credentials: an emulator's, the key that was entered, or what the machine has."""
    from google.auth import default
    from google.auth.credentials import AnonymousCredentials
    from google.oauth2.service_account import Credentials as AccountCredentials

    if params.is_emulated:
        anonymous: Credentials = AnonymousCredentials()
        return anonymous
    if params.credentials:
        key = json.loads(params.credentials)
        own: Credentials = AccountCredentials.from_service_account_info(key, scopes=SCOPES)
        return own
    found: Credentials = default(scopes=SCOPES)[0]
    return found


def open_client(params: BigQueryParams) -> bigquery.Client:
    """A client; nothing is sent yet."""
    from google.api_core.client_info import ClientInfo
    from google.api_core.client_options import ClientOptions
    from google.cloud import bigquery

    return bigquery.Client(
        project=params.payer,
        location=params.location,
        credentials=credentials_of(params),
        client_options=ClientOptions(api_endpoint=params.endpoint or None),
        client_info=ClientInfo(user_agent=AGENT),
    )

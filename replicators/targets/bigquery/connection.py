"""Opens a client of Google's library, with the credentials that the params name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replicators.connectors.google import AGENT, credentials_of
from replicators.targets.bigquery.params import BigQueryParams

if TYPE_CHECKING:
    from google.cloud import bigquery


def open_client(params: BigQueryParams) -> bigquery.Client:
    """A client; nothing is sent yet."""
    from google.api_core.client_info import ClientInfo
    from google.api_core.client_options import ClientOptions
    from google.cloud import bigquery

    return bigquery.Client(
        project=params.payer,
        location=params.location,
        credentials=credentials_of(params.credentials, is_emulated=params.is_emulated),
        client_options=ClientOptions(api_endpoint=params.endpoint or None),
        client_info=ClientInfo(user_agent=AGENT),
    )

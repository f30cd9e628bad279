"""The elasticsearch target: search indexes of Elasticsearch or OpenSearch, with a document for each
row. Importing this loads no driver."""

from __future__ import annotations

from replicators.connectors.capabilities import Delivery, TargetCapabilities
from replicators.connectors.model.modes import Mode
from replicators.connectors.target import ChangeSink, TargetChecks, TargetPlugin
from replicators.connectors.tasks import Tasks
from replicators.connectors.uris import UriScheme
from replicators.targets.elasticsearch.messages import MESSAGES
from replicators.targets.elasticsearch.params import ElasticsearchParams, places
from replicators.targets.elasticsearch.types import fit

__all__ = ["PLUGIN"]


def _checks(params: ElasticsearchParams) -> TargetChecks:
    from replicators.targets.elasticsearch.checks import ElasticsearchChecks

    return ElasticsearchChecks(params)


def _writer(params: ElasticsearchParams, tasks: Tasks) -> ChangeSink:
    from replicators.targets.elasticsearch.writer import ElasticsearchSink

    return ElasticsearchSink(params, tasks)


PLUGIN = TargetPlugin(
    name="elasticsearch",
    label="Elasticsearch or OpenSearch",
    summary="A search index for each table, with a document for each row.",
    params=ElasticsearchParams,
    capabilities=TargetCapabilities(
        delivery=Delivery.EXACTLY_ONCE,
        is_replaced_at_once=True,
        keeps_rows=True,
        rejects_rows=True,
        modes=(Mode.APPEND,),
    ),
    fit=fit,
    checks=_checks,
    writer=_writer,
    task_modules=("replicators.targets.elasticsearch.lanes",),
    places=places,
    uri=UriScheme(hosts="address", hosts_begin="http://", words={"cluster_address": "address"}),
    merge_seconds=lambda _: 1.0,
    messages=MESSAGES,
    icon="search",
)

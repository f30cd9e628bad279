"""Runs jobs of BigQuery so that each is done once.

A job's id says what it is for: the replicator and table (a digest), the generation, the sequence,
and the number of the attempt. When an answer is lost, the same request is sent again. If the
service knows the id already (409), the job that it has is the one: its end is awaited, and nothing
is started twice. A job that failed because of a passing fault of the service is repeated under the
next attempt's id.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any, TypeVar

from replicators.targets.bigquery.cost import Used, estimate_of
from replicators.targets.bigquery.errors import is_passing, translate
from replicators.targets.bigquery.params import BigQueryParams

if TYPE_CHECKING:
    from google.cloud import bigquery

logger = logging.getLogger(__name__)
ANSWER_SECONDS = 60.0
"""How long one request may take."""
REPEAT_SECONDS = 90.0
"""How long a request is sent again while no answer comes."""
DRY_RUN_SECONDS = 10.0
"""How long a dry run may take. A merge does not wait longer for its estimate."""
ATTEMPTS = 4
FIRST_WAIT_SECONDS = 1.0
RECENT_SECONDS = 86_400.0
_HEAD = "replicator_"
J = TypeVar("J")


def work_of(replicator: str, names: tuple[str, ...]) -> str:
    """The beginning of the ids of all jobs of one table and replicator."""
    told = json.dumps([replicator, names])
    return f"{_HEAD}{hashlib.sha256(told.encode()).hexdigest()[:16]}_"


class Jobs:
    """The jobs of one process. Thread safe."""

    def __init__(self, client: bigquery.Client, params: BigQueryParams) -> None:
        self._client = client
        self._params = params
        self._local = threading.local()
        self._unsettled: dict[str, set[str]] = {}
        self._looked: set[str] = set()
        self._lock = threading.Lock()
        self.waits: Callable[[float], None] = time.sleep

    @property
    def retry(self) -> Any:
        """How single requests are repeated while no answer comes."""
        from google.cloud.bigquery import DEFAULT_RETRY

        return DEFAULT_RETRY.with_timeout(REPEAT_SECONDS)

    # What jobs are for

    @contextmanager
    def work(self, of: str, detail: str) -> Iterator[Used]:
        """The jobs of this thread are for this: their ids begin with it. What is still running of
        the same work, of this process or an earlier one, is awaited first. It gives what the jobs
        use."""
        before = getattr(self._local, "work", None), getattr(self._local, "used", None)
        used = Used()
        self._local.work, self._local.used = (of, detail), used
        try:
            self.settle(of)
            yield used
        finally:
            self._local.work, self._local.used = before

    def _id(self, job: str, attempt: int) -> str:
        of, detail = getattr(self._local, "work", None) or (_HEAD, "")
        parts = [detail, job.removeprefix(_HEAD), str(attempt)]
        return of + "_".join(p for p in parts if p)

    def settle(self, of: str) -> None:
        """Wait for jobs whose outcome is unknown: an answer was lost, or the process that started
        them died. Until they end, what the table holds may still change."""
        with self._lock:
            known = self._unsettled.pop(of, set())
            is_new = of not in self._looked
            self._looked.add(of)
        try:
            for name in sorted(known | (self._running(of) if is_new else set())):
                self._end(name)
        except Exception as err:
            with self._lock:
                self._unsettled.setdefault(of, set()).update(known)
                self._looked.discard(of)
            raise translate(err, self._params.project) from err

    def _running(self, of: str) -> set[str]:
        from google.api_core.exceptions import Forbidden

        since = datetime.fromtimestamp(time.time() - RECENT_SECONDS, UTC)
        found = set()
        for state in ("running", "pending"):
            try:
                listed = self._client.list_jobs(
                    state_filter=state, min_creation_time=since, retry=self.retry,
                    timeout=ANSWER_SECONDS,
                )  # fmt: skip
                found |= {str(j.job_id) for j in listed if str(j.job_id).startswith(of)}
            except Forbidden:  # the checks warn of it; the progress row fences all the same
                return set()
        return found

    def _end(self, name: str) -> None:
        from google.api_core.exceptions import GoogleAPICallError, NotFound

        try:
            made = self._get(name)
        except NotFound:
            return
        try:
            made.result(retry=self.retry)
        except GoogleAPICallError:
            if not made.done(retry=self.retry, timeout=ANSWER_SECONDS):
                raise

    def _get(self, name: str) -> Any:
        return self._client.get_job(
            name, location=self._params.location, retry=self.retry, timeout=ANSWER_SECONDS
        )

    # Running

    def query(self, sql: str, job: str, *, attempts: int = ATTEMPTS) -> bigquery.QueryJob:
        """Run a statement or a script to its end."""
        from google.cloud import bigquery

        def begin(name: str) -> bigquery.QueryJob:
            config = bigquery.QueryJobConfig(
                labels=self._params.label_values, use_query_cache=False
            )
            if self._params.maximum_bytes_billed:
                config.maximum_bytes_billed = self._params.maximum_bytes_billed
            return self._client.query(
                sql, job_config=config, job_id=name, retry=self.retry, job_retry=None,
                timeout=ANSWER_SECONDS,
            )  # fmt: skip

        def result(made: bigquery.QueryJob) -> None:
            made.result(retry=self.retry, job_retry=None)

        return self._run(job, begin, result, attempts)

    def estimate(self, sql: str) -> None:
        """Ask what a script would read, by a dry run, where this thread's work wants to know it. No
        fault of it stops the work. An emulator is not asked: it may run the script."""
        from google.cloud import bigquery

        used: Used | None = getattr(self._local, "used", None)
        if used is None or not used.wants_estimate or self._params.is_emulated:
            return
        used.wants_estimate = False
        config = bigquery.QueryJobConfig(
            labels=self._params.label_values, use_query_cache=False, dry_run=True
        )
        try:
            made = self._client.query(
                sql,
                job_config=config,
                retry=None,  # type: ignore[arg-type]
                job_retry=None,
                timeout=DRY_RUN_SECONDS,
            )
            used.estimate = estimate_of(made.to_api_repr().get("statistics", {}).get("query", {}))
        except Exception as err:  # noqa: BLE001 (an estimate is for the page only)
            logger.info("BigQuery did not estimate a merge: %s.", type(err).__name__)

    def load(
        self, file: IO[bytes], target: str, config: bigquery.LoadJobConfig, job: str
    ) -> bigquery.LoadJob:
        """Load a local file. It is sent in pieces, and an upload that is cut goes on where it
        was."""

        def begin(name: str) -> bigquery.LoadJob:
            return self._client.load_table_from_file(
                file, target, rewind=True, num_retries=3, job_id=name,
                job_config=config, timeout=ANSWER_SECONDS,
            )  # fmt: skip

        return self._run(job, begin, lambda made: made.result(retry=self.retry), ATTEMPTS)

    def load_urls(
        self, urls: list[str], target: str, config: bigquery.LoadJobConfig, job: str
    ) -> bigquery.LoadJob:
        """Load files that lie in a bucket."""

        def begin(name: str) -> bigquery.LoadJob:
            return self._client.load_table_from_uri(
                urls, target, job_id=name, job_config=config, retry=self.retry,
                timeout=ANSWER_SECONDS,
            )  # fmt: skip

        return self._run(job, begin, lambda made: made.result(retry=self.retry), ATTEMPTS)

    def _run(
        self, job: str, begin: Callable[[str], J], result: Callable[[J], object], attempts: int
    ) -> J:
        wait = FIRST_WAIT_SECONDS
        for attempt in range(1, attempts + 1):
            name, made = self._id(job, attempt), None
            try:
                made = self._begun(name, begin)
                self._count(made)
                result(made)
                self._count_bytes(made)
                return made
            except Exception as err:
                has_ended = made is not None and bool(getattr(made, "error_result", None))
                if not has_ended:
                    self._note(name, err)
                if not has_ended or attempt == attempts or not is_passing(err):
                    raise translate(err, self._params.project) from err
            self.waits(wait)
            wait *= 3
        raise AssertionError("unreachable")

    def _count(self, made: Any) -> None:
        used: Used | None = getattr(self._local, "used", None)
        if used is not None and made.job_type == "load":
            used.loads += 1

    def _count_bytes(self, made: Any) -> None:
        used: Used | None = getattr(self._local, "used", None)
        if used is not None and made.job_type == "query":
            used.bytes_read += made.total_bytes_processed or 0

    def _begun(self, name: str, begin: Callable[[str], J]) -> J:
        """The job of this name: started now, or by an earlier request whose answer was lost."""
        from google.api_core.exceptions import ClientError, Conflict, ServerError
        from requests.exceptions import RequestException

        for is_last in (False, False, True):
            try:
                return begin(name)
            except Conflict:
                return self._get(name)  # type: ignore[no-any-return]
            except (RequestException, ServerError, ClientError) as err:
                if is_last or (isinstance(err, ClientError) and not _is_upload_gone(err)):
                    raise
                self.waits(FIRST_WAIT_SECONDS)
        raise AssertionError("unreachable")

    def _note(self, name: str, err: Exception) -> None:
        """Remember a job whose outcome is unknown. One that the service refused never began."""
        work = getattr(self._local, "work", None)
        if work is None or 400 <= int(getattr(err, "code", 0) or 0) < 500:
            return
        with self._lock:
            self._unsettled.setdefault(work[0], set()).add(name)


def _is_upload_gone(err: Any) -> bool:
    """Whether the service no longer knows the upload that a piece was sent for: it has expired, or
    it was complete and that answer was lost. It has to begin again (404 and 410 of a PUT):
    https://cloud.google.com/bigquery/docs/reference/api-uploads#errors."""
    request = getattr(getattr(err, "response", None), "request", None)
    return err.code in (404, 410) and getattr(request, "method", "") == "PUT"

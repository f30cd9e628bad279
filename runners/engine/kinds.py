"""The parts of a run that depend on the kind of its target: a target that is merged into, or one
that takes every change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from replicators.connectors.model.modes import Mode
from replicators.connectors.model.schema import TableId, TableSchema
from replicators.connectors.problems.errors import ReplicationError
from replicators.connectors.snapshot import ChunkReader, SnapshotSession
from replicators.connectors.target import ChangeSink, MergeTarget, Target, Watermarked
from replicators.connectors.tasks import Tasks
from replicators.connectors.together import MergesTogether
from runners.engine.apply.deliver import Deliverer
from runners.engine.apply.merge import Applier, Merger
from runners.engine.apply.refill import Filler
from runners.engine.apply.repair import Repairer
from runners.engine.apply.resolve import Resolver
from runners.engine.apply.rewind import Rewinder, RewindTarget
from runners.engine.apply.spending import Spending
from runners.engine.capture.heartbeat import Heartbeat
from runners.engine.changelog.backlog import Backlog
from runners.engine.changelog.segments import ChangeLog
from runners.engine.checkpoints.publish import Publisher
from runners.engine.checkpoints.rounds import NoRounds, Rounds, TableRounds
from runners.engine.idle import Idle
from runners.engine.job import Job
from runners.engine.schema.evolution import Evolver
from runners.engine.settings import RunnerSettings
from runners.engine.sizes import Limits
from runners.engine.snapshot.chunks import Snapshotter
from runners.engine.snapshot.consistent import TableCopier
from runners.engine.snapshot.deliver import SinkSnapshotter
from runners.engine.store.protocol import Store


@dataclass(frozen=True, slots=True)
class Kit:
    """What makes the parts of a run."""

    job: Job
    target: Target
    tasks: Tasks
    store: Store
    log: ChangeLog
    settings: RunnerSettings
    backlog: Backlog

    def __post_init__(self) -> None:
        name, modes = self.job.target.name, self.job.target.capabilities.modes
        is_sink = isinstance(self.target, ChangeSink)
        if is_sink is isinstance(self.target, MergeTarget):
            raise TypeError(f"{name} is neither a MergeTarget nor a ChangeSink, or both")
        if is_sink and modes != (Mode.APPEND,):
            raise TypeError(f"{name} takes every change, so its only mode is append")

    @property
    def replicator(self) -> str:
        """The replicator that the tables belong to."""
        return self.job.replicator

    @property
    def limits(self) -> Limits:
        """What the path and the target can hold of a row."""
        has_nul = self.job.target.capabilities.has_nul
        return Limits(self.settings.row_limit_bytes, is_without_nul=not has_nul)

    def evolver(self) -> Evolver:
        """Follows schema changes."""
        writer = self.target if isinstance(self.target, MergeTarget) else None
        return Evolver(writer, self.store, self.job.options.schema_changes, self.job.source)

    def spending(self) -> Spending:
        """Counts what tables use of the target's budget."""
        return Spending(self.store, self.job.target.budget)

    def applier(self, evolver: Evolver, spending: Spending) -> Applier:
        """Brings changes to the target."""
        made = self._applier(evolver, spending)
        made.task_bytes = self.settings.task_bytes
        return made

    def _applier(self, evolver: Evolver, spending: Spending) -> Applier:
        if isinstance(self.target, ChangeSink):
            return Deliverer(self.target, self.store, self.log, self.replicator, evolver)
        reader, params = self.job.source.row_reader, self.job.source_params
        filler = Filler(
            self._merged,
            (lambda: reader(params)) if reader else None,
            self.limits,
        )
        return Merger(
            self.tasks,
            self._merged,
            self.store,
            self.log,
            self.replicator,
            filler,
            evolver,
            spending,
        )

    @property
    def _merged(self) -> MergeTarget:
        assert isinstance(self.target, MergeTarget)
        return self.target

    def rewinder(
        self, on_progress: Callable[[TableId], None], should_stop: Callable[[], bool]
    ) -> Rewinder | None:
        """Rewinds tables to a time; None where the target keeps no versions."""
        if not isinstance(self.target, RewindTarget):
            return None
        return Rewinder(
            self.tasks,
            self.target,
            self.store,
            self.log,
            self.replicator,
            on_progress=on_progress,
            should_stop=should_stop,
        )

    def repairer(self, applier: Applier, spending: Spending) -> Repairer:
        """Writes rows again from the source, or says why it can't."""
        return Repairer(
            self.target,
            self.store,
            self.log,
            self.replicator,
            applier,
            self.job.row_reader(self.job.slot, lambda: self.store.memory().position),
            spending,
            self.limits,
        )

    def publisher(self, idle: Idle) -> Publisher | None:
        """Publishes watermarks for the target's readers; None where the target can't hold them."""
        if not isinstance(self.target, Watermarked):
            return None
        seconds = self.settings.watermark_seconds
        return Publisher(self.target, self.replicator, seconds, idle=idle)

    def rounds(
        self, heartbeat: Heartbeat, applier: Applier, publisher: Publisher | None, idle: Idle
    ) -> TableRounds:
        """Finds moments at which tables are level, where the target has versions to name."""
        if publisher is None or not isinstance(self.target, Watermarked):
            return NoRounds(self.backlog)
        return Rounds(
            store=self.store,
            writer=self.target,
            backlog=self.backlog,
            settings=self.settings,
            replicator=self.replicator,
            has_pending=lambda row, end: bool(applier.pending(row, end)),
            known_until=lambda: heartbeat.known_until,
            publish=publisher.offer,
            source_now=heartbeat.now,
            idle=idle,
        )

    def together(self) -> MergesTogether | None:
        """The target, where people ask that all tables merge in one commit."""
        if not self.job.options.consistent:
            return None
        can = self.job.target.capabilities.merges_together
        if not (can and isinstance(self.target, MergesTogether)):
            raise ReplicationError("target:no-consistent", target=self.job.target.label)
        return self.target

    def resolver(self, heartbeat: Heartbeat) -> Resolver | None:
        """Tells a sink how far its tables are resolved."""
        if not isinstance(self.target, ChangeSink):
            return None
        return Resolver(
            self.target,
            self.store,
            self.backlog,
            self.replicator,
            lambda: heartbeat.marks,
            self.job.target.resolved_seconds,
        )

    def copier(
        self,
        session: SnapshotSession,
        reader: ChunkReader,
        *,
        now: Callable[[], float],
        on_progress: Callable[[TableSchema, int], None],
        should_stop: Callable[[], bool],
        is_log_full: Callable[[], bool],
    ) -> TableCopier:
        """Copies tables in a consistent snapshot."""
        if isinstance(self.target, ChangeSink):
            return SinkSnapshotter(
                self.target,
                session,
                reader,
                self.settings,
                self.store,
                now=now,
                on_progress=on_progress,
                should_stop=should_stop,
            )
        return Snapshotter(
            self.tasks,
            self._merged,
            session,
            reader,
            self.settings,
            self.store,
            on_progress=on_progress,
            should_stop=should_stop,
            is_log_full=is_log_full,
            limits=self.limits,
        )

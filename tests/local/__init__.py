"""A run without a JVM: the engine with `LocalTasks` and a target of Parquet files, for tests of the
order of writes, of sources and of the engine. Whatever a lakehouse's own statements do is tested on
a lakehouse."""

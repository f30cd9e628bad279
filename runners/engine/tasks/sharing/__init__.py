"""One Spark for many small replicators of a machine: a process with a JVM of its own keeps a Spark
Connect server, and runs are its clients. `keeper` is that process, `service` its JVM, `client` a
run's side, `ways` the socket on which the two find each other, and `fitness` says which replicators
can share."""

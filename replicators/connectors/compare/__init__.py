"""Change capture without a log: a data set is compared with the last one by hashes, on Spark.
Importing this package loads no pyspark; neither do `config` and `messages`."""

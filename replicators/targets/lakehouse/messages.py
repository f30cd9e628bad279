"""Texts of errors and problems that only the lakehouse target has."""

from __future__ import annotations

from collections.abc import Mapping

from replicators.connectors.problems.message import Help, Message, Retry, of_table

MESSAGES: Mapping[str, Message] = {
    "target:store-classes": Message(
        "Spark may lack the store's classes",
        "The warehouse lies in a store that this version brings no classes for, or in HDFS without "
        "a WebHDFS address.",
        "Enter WebHDFS address, or choose a folder or a bucket of S3, Google or Azure, or use a "
        "Spark of your own (REPLICATOR_SPARK_REMOTE or REPLICATOR_SPARK_MASTER) that has the "
        "store's connector.",
        "Without these classes the run fails at its start.",
    ),
    "target:gcs-key": Message(
        "Google does not accept the sign-in",
        "Google does not know the service account's key, or this machine has no identity there.",
        "Enter the content of a valid key file in Service account key. Where it is empty, give the "
        "machine an identity, or name a key file in GOOGLE_APPLICATION_CREDENTIALS of web and "
        "workers.",
        "Nothing can be read or written without it.",
        help=Help.EDIT,
    ),
    "target:gcs-rights": Message(
        "A right is missing in the bucket",
        "This service account may not {act} the bucket `{bucket}`.",
        "Grant it the roles Storage Object User (roles/storage.objectUser) and Storage Legacy "
        "Bucket Reader (roles/storage.legacyBucketReader) for the bucket.",
        "The check writes, reads, lists and deletes a small file, as a run does.",
        help=Help.EDIT,
    ),
    "target:adls-key": Message(
        "Azure does not accept the sign-in",
        "The storage account does not accept the key or the token, or this machine has no identity "
        "there. A token may have ended.",
        "Enter Storage account key or SAS token again. Where both are empty, set AZURE_CLIENT_ID, "
        "AZURE_TENANT_ID and AZURE_CLIENT_SECRET of web and workers, or give the machine an "
        "identity.",
        "Nothing can be read or written without it.",
        help=Help.EDIT,
    ),
    "target:adls-rights": Message(
        "A right is missing in the container",
        "This sign-in may not {act} the container `{bucket}`.",
        "Grant the identity the role Storage Blob Data Contributor for the container, and a SAS "
        "token the rights to read, add, create, write, delete and list. See that the account lets "
        "keys sign in, where one is entered, and this machine's address in.",
        "The check writes, reads, lists and deletes a small file, as a run does.",
        help=Help.EDIT,
    ),
    "target:hdfs-rights": Message(
        "A right is missing in HDFS",
        "This user may not {act} the warehouse's folder in `{bucket}`.",
        "Make the folder and give it to the user: hdfs dfs -mkdir /warehouse; hdfs dfs -chown "
        "replicator /warehouse. Or enter another HDFS user.",
        "The check writes, reads, lists and deletes a small file, as a run does.",
        help=Help.EDIT,
    ),
    "target:hdfs-login": Message(
        "HDFS asks for a sign-in",
        "The cluster asks for Kerberos or another sign-in, which is not supported.",
        "Choose a cluster that takes users by their names, or another store.",
        "Nothing can be read or written there.",
        help=Help.EDIT,
    ),
    "target:hdfs-user": Message(
        "No user for HDFS",
        "No HDFS user is entered, and the user that runs this program has no name.",
        "Enter an HDFS user, or set HADOOP_USER_NAME of web and workers. A container's user often "
        "has no entry in /etc/passwd.",
        "HDFS knows users by their names.",
        help=Help.EDIT,
    ),
    "target:hdfs-unknown": Message(
        "No WebHDFS at this address",
        "A server answers at the WebHDFS address, but not as a namenode or an HttpFS gateway does.",
        "Enter the namenode's HTTP address, such as http://namenode:9870, or that of an HttpFS "
        "gateway.",
        "This program reads and writes there by WebHDFS.",
        help=Help.EDIT,
    ),
    "target:layout-column": of_table(
        "A copy can't be divided or sorted by this column",
        "Table `{table}` can't be divided or sorted by `{column}`: {reason}.",
        "Correct Partition by or Sort by of the target.",
        "The copy would be neither divided nor sorted.",
        help=Help.EDIT,
    ),
    "target:layout-unused": Message(
        "A rule for tables that are not chosen",
        "Partition by or Sort by names {named}, which is no chosen table.",
        "Write the table as schema.table or as its name, as the source spells it.",
        "The rule changes nothing.",
    ),
    "target:catalog-unreachable": Message(
        "Catalog not reachable",
        "The catalog's server does not answer, or says that it can't serve now.",
        "Check the catalog's address and the token endpoint, and that both servers run and let "
        "this machine in.",
        "Changes wait in the change log.",
        retry=Retry.AUTO,
        help=Help.EDIT,
    ),
    "target:catalog-unknown": Message(
        "No REST catalog at this address",
        "A server answers at the catalog's address, but not as an Iceberg REST catalog does.",
        "Enter the address before /v1, such as https://catalog.example/api/catalog.",
        "A run can't begin without the catalog.",
        help=Help.EDIT,
    ),
    "target:catalog-refused": Message(
        "Catalog refuses the credentials",
        "The catalog or its token endpoint does not accept the user and password, the token or the "
        "scope. A token may have expired.",
        "Enter user and password or a new token again, and check scope and token endpoint.",
        "Changes wait in the change log.",
        help=Help.EDIT,
    ),
    "target:catalog-warehouse": Message(
        "Warehouse not known to the catalog",
        "The catalog has no warehouse of the name that is entered, or wants a name.",
        "Enter the name that the catalog's server gives the warehouse in Catalog's warehouse.",
        "A run can't begin without the warehouse.",
        help=Help.EDIT,
    ),
    "target:catalog-rights": of_table(
        "A right is missing in the catalog",
        "The catalog does not let this user {act}.",
        "Grant the user the right to create and drop namespaces, and to create, change, rename, "
        "list and drop tables in them.",
        "Changes wait in the change log.",
        retry=Retry.AFTER_FIX,
        help=Help.EDIT,
    ),
    "target:catalog-trial": Message(
        "The catalog can't {act}",
        "The catalog's server failed to {act} for the assessment's trial.",
        "Let the catalog's server write in the warehouse: it makes the tables' metadata files. "
        "Where it allows only certain folders, choose a warehouse in one of them.",
        "The trial makes a namespace and a small table, as a run does, and drops both.",
        help=Help.EDIT,
    ),
    "target:keys-not-lent": of_table(
        "The catalog lends no keys",
        "The REST catalog gave a table without keys of S3 for its folder.",
        "Let the catalog lend keys (vended credentials) to this user, or choose own in Keys of the "
        "store. A catalog that only signs requests for others (remote signing) can't be used.",
        "Nothing can be read or written without keys.",
        retry=Retry.AFTER_FIX,
        help=Help.EDIT,
    ),
    "target:lent-keys": of_table(
        "Lent keys not accepted",
        "The store does not accept the keys that the catalog lent, or they have ended.",
        "Check that the catalog lends keys of this store, and that they live for some minutes.",
        "The keys are asked for again with each step. Changes wait in the change log.",
        retry=Retry.AUTO,
    ),
    "target:lent-rights": of_table(
        "A right is missing with lent keys",
        "The keys that the catalog lent may not {act} the table's folder.",
        "Let the catalog lend keys that may list the bucket, and read, write and delete what lies "
        "in the table's folder.",
        "The check writes, reads, lists and deletes a small file, as a run does. A run asks for "
        "keys again.",
        retry=Retry.AUTO,
    ),
    "target:catalog-views": Message(
        "The catalog holds no views",
        "The catalog's server failed to {act} for the assessment's trial. It may have no views.",
        "Turn Views of the living rows off, or choose a catalog that holds views.",
        "Tables would stop where their views are made.",
        help=Help.EDIT,
    ),
    "target:catalog-columns": of_table(
        "The metastore refuses changed columns",
        "The Hive metastore compares a table's columns by their place. It refuses a change that "
        "gives a place a column of another type.",
        "Set hive.metastore.disallow.incompatible.col.type.changes=false in the metastore's own "
        "settings, and start it again.",
        "A table stops when the source drops a column; in soft delete and history also when it "
        "adds one.",
        retry=Retry.AFTER_FIX,
    ),
    "target:catalog-region": Message(
        "Catalog's region not known",
        "Nobody says in which region Glue's catalog is.",
        "Enter Catalog region or S3 region, or set AWS_REGION of web and workers.",
        "A run can't begin without the catalog.",
        help=Help.EDIT,
    ),
    "target:catalog-name": of_table(
        "Name not possible in the catalog",
        "The catalog can't list table `{table}` by its names: {reason}.",
        "Choose lower in Case of names, or other names by Namespace, Namespaces of schemas and "
        "Table prefix.",
        "The table can't be copied.",
        help=Help.EDIT,
    ),
    "target:column-reserved": of_table(
        "Column name reserved by Iceberg",
        "Table `{table}` has a column `{column}`, a name that Iceberg keeps for itself.",
        "Leave the column out, rename it at the source, or use Delta. A column that came while "
        "the table was copied: rename it, and a mirror is copied afresh by itself within minutes; "
        "re-sync a table of another mode.",
        "Changes cannot be merged into a table with such a column; its rows stay in the target as "
        "they were.",
        help=Help.CHANGE,
        is_of_name=True,
    ),
}

"""Whether the audit trail has recorded a token's end is called so."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = (("replicators", "0007_tables_version"),)

    operations = (migrations.RenameField("apitoken", "is_end_told", "is_end_recorded"),)

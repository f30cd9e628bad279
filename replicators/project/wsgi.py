"""The entry point of the web server."""

from __future__ import annotations

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from replicators.project.keys import require_keys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "replicators.project.settings")

require_keys(settings.KEYS, settings.VAR_DIR)
if settings.DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    settings.DATABASES["default"]["OPTIONS"]["timeout"] = settings.WEB_WAIT_SECONDS
else:
    settings.DATABASES["default"]["OPTIONS"]["connect_timeout"] = max(
        1, int(settings.WEB_WAIT_SECONDS)
    )
application = get_wsgi_application()

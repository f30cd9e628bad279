"""Django's settings. Every value that may differ between installations comes through `env`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from replicators.connectors.model.modes import CHOICES, Mode
from replicators.private import private_file, private_folder
from replicators.project.env import (
    env_bool,
    env_database,
    env_int,
    env_list,
    env_seconds,
    env_secret,
    env_text,
)
from replicators.project.keys import development_key
from replicators.project.runner import runner_settings
from runners.engine.verify.report import Outcome
from runners.states import (
    REPLICATOR_STATES,
    TABLES_SHOWN,
    RepairState,
    TableState,
    VerificationState,
)

BASE_DIR = Path(__file__).resolve().parent.parent.parent
VAR_DIR = Path(env_text("REPLICATOR_VAR_DIR", str(BASE_DIR / "var")))
with suppress(OSError):  # where it can't be made, whoever needs it says so
    private_folder(VAR_DIR)

# --- where it runs -----------------------------------------------------------------------------------------------  # noqa: E501
DEBUG = env_bool("DEBUG", False)
SECRET_KEY = env_secret("SECRET_KEY")
REPLICATOR_SECRET_KEY = env_secret("REPLICATOR_SECRET_KEY")
if DEBUG:
    SECRET_KEY = SECRET_KEY or development_key(VAR_DIR / "secret_key")
    REPLICATOR_SECRET_KEY = REPLICATOR_SECRET_KEY or development_key(
        VAR_DIR / "replicator_secret_key"
    )
KEYS = {"SECRET_KEY": SECRET_KEY, "REPLICATOR_SECRET_KEY": REPLICATOR_SECRET_KEY}
ALLOWED_HOSTS = env_list("ALLOWED_HOSTS", ("localhost", "127.0.0.1", "[::1]"))
CSRF_TRUSTED_ORIGINS = env_list("CSRF_TRUSTED_ORIGINS")
DATA_UPLOAD_MAX_MEMORY_SIZE = 20_000_000  # far above a definition with every table and column named
DATA_UPLOAD_MAX_NUMBER_FIELDS = 20_000  # a box for each table of a large source

# --- HTTPS: on unless DEBUG is on or HTTPS=false says otherwise (a demo on localhost) -----------------------------  # noqa: E501
HTTPS = env_bool("HTTPS", not DEBUG)
SECURE_SSL_REDIRECT = HTTPS
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SECURE_HSTS_SECONDS = int(env_seconds("HSTS_SECONDS", 365 * 86400)) if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
BEHIND_PROXY = env_bool("BEHIND_PROXY", False)
if BEHIND_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

# --- applications ------------------------------------------------------------------------------------------------  # noqa: E501
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "csp",
    "django_htmx",
    "django_filters",
    "rest_framework",
    "drf_spectacular",
    "replicators",
    "assessments",
    "runners",
    "drafts",
]
MIDDLEWARE = [
    "replicators.project.probes.Probes",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "replicators.project.no_store.NoStore",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "replicators.project.slashes.Slashes",
    "replicators.project.bodies.Bodies",
    "replicators.project.nul.NoNul",
    "replicators.project.audited.Audited",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "replicators.project.sign_in.SignInFirst",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "replicators.project.unavailable.Unavailable",
]
ROOT_URLCONF = "replicators.project.urls"
WSGI_APPLICATION = "replicators.project.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.debug",
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

# --- database ----------------------------------------------------------------------------------------------------  # noqa: E501
DATABASES = {
    "default": env_database("DATABASE_URL", f"sqlite:///{VAR_DIR / 'replicators.sqlite3'}")
}
# How long a page waits for the database. Runs and workers may wait longer: nobody waits for them.
WEB_WAIT_SECONDS = env_seconds("REPLICATOR_WEB_WAIT_SECONDS", 5.0, minimum=0.1)
if DATABASES["default"]["ENGINE"] == "django.db.backends.postgresql":
    # Notice an unreachable server within half a minute, not only when TCP gives up.
    DATABASES["default"]["OPTIONS"] = {
        "connect_timeout": 10,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,
        **DATABASES["default"].get("OPTIONS", {}),
    }
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # Web, workers, beat and runs all write. There is one writer at a time; each one waits for its
    # turn at the start of its transaction.
    if Path(DATABASES["default"]["NAME"]).is_absolute():  # and not in memory
        private_folder(Path(DATABASES["default"]["NAME"]).parent)
        private_file(Path(DATABASES["default"]["NAME"]))
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 30,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;",
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- people ------------------------------------------------------------------------------------------------------  # noqa: E501
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "login"
CSRF_FAILURE_VIEW = "replicators.project.errors.csrf_failure"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"

# --- texts and files ---------------------------------------------------------------------------------------------  # noqa: E501
LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": (
            "django.contrib.staticfiles.storage.StaticFilesStorage"
            if DEBUG
            else "whitenoise.storage.CompressedManifestStaticFilesStorage"
        )
    },
}
WHITENOISE_USE_FINDERS = DEBUG

# --- REST --------------------------------------------------------------------------------------------------------  # noqa: E501
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "replicators.api.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["replicators.api.permissions.ViewOrEdit"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["replicators.api.parsers.StrictJsonParser"],
    "DEFAULT_SCHEMA_CLASS": "replicators.api.schema.RestSchema",
    "EXCEPTION_HANDLER": "replicators.api.errors.exception_handler",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Replicators",
    "DESCRIPTION": "Builds, runs and watches replicators.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "COMPONENT_SPLIT_PATCH": False,  # a change's serializer says itself what may be left out
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "replicators.api.schema.postprocess_errors",
    ],
    "ENUM_NAME_OVERRIDES": {
        "DesiredStateEnum": [("running", "running"), ("paused", "paused")],
        "TableStateEnum": [(s, s) for s in (*TABLES_SHOWN, str(TableState.REMOVED))],
        "ReplicatorStateEnum": [(s, s) for s in REPLICATOR_STATES],
        "VerificationStateEnum": [(s, s) for s in map(str, VerificationState)],
        "RepairStateEnum": [(s, s) for s in map(str, RepairState)],
        "OutcomeEnum": [(s, s) for s in map(str, Outcome)],
        "ModeEnum": [(m, m) for m in map(str, Mode)],
        "ModeChoiceEnum": [(m, m) for m in map(str, CHOICES)],
    },
}

# --- replicators -------------------------------------------------------------------------------------------------  # noqa: E501
RUNNER = runner_settings(BASE_DIR)
SPARK = env_text("REPLICATOR_SPARK", "own", choices=("own", "shared"))
MAX_RUNS = env_int("REPLICATOR_MAX_RUNS", 4, minimum=1)
MAX_VERIFICATIONS = env_int("REPLICATOR_MAX_VERIFICATIONS", 1, minimum=1)
VERIFICATION_SECONDS = env_seconds("REPLICATOR_VERIFICATION_SECONDS", 90 * 86400)
STOP_GRACE_SECONDS = env_seconds("REPLICATOR_STOP_GRACE_SECONDS", 20.0)
RUN_LOG_DIR = Path(env_text("REPLICATOR_RUN_LOG_DIR", str(VAR_DIR / "run-logs")))
ACTIVITY_SECONDS = env_seconds("REPLICATOR_ACTIVITY_SECONDS", 365 * 86400)
AUDIT_SECONDS = env_seconds("REPLICATOR_AUDIT_SECONDS", 0.0)
TOKEN_MAX_SECONDS = env_seconds("REPLICATOR_TOKEN_MAX_SECONDS", 365 * 86400)
TOKEN_SECONDS = env_seconds("REPLICATOR_TOKEN_SECONDS", 90 * 86400)
if TOKEN_MAX_SECONDS and not 86400 <= TOKEN_SECONDS <= TOKEN_MAX_SECONDS:
    raise ImproperlyConfigured(
        "REPLICATOR_TOKEN_SECONDS must be a time from 1d to REPLICATOR_TOKEN_MAX_SECONDS."
    )
REACH_FOLDERS = env_list("REPLICATOR_ALLOWED_FOLDERS")
if any(not folder.startswith("/") for folder in REACH_FOLDERS):
    raise ImproperlyConfigured("REPLICATOR_ALLOWED_FOLDERS must hold absolute paths.")
REACH_HOSTS = env_list("REPLICATOR_ALLOWED_HOSTS")
SHOW_HIDDEN_PLUGINS = env_bool("REPLICATOR_SHOW_HIDDEN_PLUGINS", False)

# --- looks into sources and targets: never so many that no thread is left for pages --------------------------------  # noqa: E501
WEB_THREADS = env_int("WEB_THREADS", 8, minimum=2, maximum=1000)
WEB_WAITERS = env_int("WEB_WAITERS", 64, minimum=1, maximum=1000)
LOOKS = env_int("REPLICATOR_LOOKS", WEB_THREADS // 2, minimum=1, maximum=WEB_THREADS - 1)
LOOK_SECONDS = env_seconds("REPLICATOR_LOOK_SECONDS", 30.0, minimum=1.0)

# --- Celery: `runs` (threads, one slot a run) and `default` (prefork) ---------------------------------------------  # noqa: E501
REDIS_URL = env_secret("REDIS_URL")
CELERY_BROKER_URL = REDIS_URL or "memory://"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # a worker outlives any outage of the broker
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_connect_timeout": 2, "socket_timeout": 10}
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_ROUTES = {"runners.tasks.supervise_run": {"queue": "runs"}}
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SCHEDULE_FILENAME = str(VAR_DIR / "beat-schedule")
CELERY_BEAT_SCHEDULE = {
    "reconcile-runs": {
        "task": "runners.tasks.reconcile_runs",
        "schedule": 10.0,
        "options": {"expires": 10},
    },
    "reconcile-verifications": {
        "task": "runners.tasks.reconcile_verifications",
        "schedule": 10.0,
        "options": {"expires": 10},
    },
    "keep-feeds": {
        "task": "runners.tasks.keep_feeds",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "prune-metrics": {
        "task": "runners.tasks.prune_metrics",
        "schedule": 300.0,
        "options": {"expires": 300},
    },
}

# --- logs --------------------------------------------------------------------------------------------------------  # noqa: E501
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": env_text("LOG_LEVEL", "INFO", choices=LEVELS)},
}

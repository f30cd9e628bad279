# The commands of this project. `make` alone lists them.
PYTHON ?= python3.11
PY := .venv/bin/python
WORKERS ?= 2
SIDE_BY_SIDE := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
.DEFAULT_GOAL := help
.PHONY: help python setup setup-tests demo demo-reset dev check format test test-long test-fast e2e nemesis screenshots bench openapi docs clean migrate serve worker-runs worker-default beat

help: ## list these commands
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /  \1\t/' | expand -t 16

python:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "$(PYTHON) is missing. As root: apt-get install python3.11 (or: make PYTHON=... )"; exit 1; }

setup: python ## install what the program needs (apt, Python, jars, front-end files)
	@$(PYTHON) -m setup

setup-tests: python
	@$(PYTHON) -m setup --tests

demo: setup ## a live PostgreSQL into a lakehouse (DEMO_TARGET=postgresql, bigquery: into these), in the foreground; Ctrl-C stops it (not for production)
	@$(PY) -m demo

demo-reset: setup ## as demo, from an empty start
	@$(PY) -m demo --reset

dev: setup ## web, workers, beat and broker with DEBUG=true, without demo data (not for production)
	@$(PY) -m demo --dev

check: setup-tests ## lint, types, layers, migrations, OpenAPI
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	.venv/bin/lint-imports
	$(PY) manage.py makemigrations --check --dry-run
	$(PY) manage.py spectacular --validate --fail-on-warn --file var/openapi.yaml

format: ## let ruff write the code's format
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

test: setup-tests ## the whole suite, with real servers (WORKERS=2 processes side by side; 0: in one)
	$(PY) -m pytest $(SIDE_BY_SIDE) --plugin-minutes var/plugin-tests.md

test-long: setup-tests ## the whole suite with the full matrices (hours); writes docs/test-report.md
	$(PY) -m pytest --long --report docs/test-report.md

test-fast: ## unit and app tests only
	$(PY) -m pytest $(SIDE_BY_SIDE) tests/unit tests/app

e2e: setup-tests ## the browser tests
	$(PY) -m pytest tests/e2e

nemesis: setup-tests ## a random walk against the data path (SEED=... STEPS=200 FORMAT=iceberg MINUTES=... NEMESIS_REPORT=file)
	$(PY) -m pytest tests/model/test_nemesis.py -s

screenshots: setup-tests ## pictures of the main pages, of a demo that runs some minutes, to docs/screenshots
	@$(PY) -m tests.e2e.screenshots

bench: setup-tests ## measure, print a table, write benchmarks/results.json
	@$(PY) -m benchmarks.peers.environments || echo "A peer that is missing is named in the table."
	@$(PY) -m benchmarks

openapi: ## write docs/openapi.yaml
	$(PY) manage.py spectacular --validate --file docs/openapi.yaml

docs: openapi ## write the API's description, the configuration's page and example, and the table of promises
	$(PY) manage.py configuration_docs
	$(PY) -m tests.promises

migrate: ## bring the program's database and static files up to date
	$(PY) manage.py migrate --noinput
	$(PY) manage.py collectstatic --noinput

serve: ## the web process (BIND=127.0.0.1:8000)
	@exec $(PY) -m setup.processes web

worker-runs: ## the worker that supervises runs
	@exec $(PY) -m setup.processes worker-runs

worker-default: ## the worker for short tasks
	@exec $(PY) -m setup.processes worker-default

beat: ## the clock
	@exec $(PY) -m setup.processes beat

clean: ## remove caches and what set-up made (the demo's data stay: see demo-reset)
	rm -rf .venv var/runtime var/jars var/setup node_modules static/vendor var/staticfiles
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

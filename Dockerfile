# One image for web, workers and beat: the same set-up as `make setup` on a Debian machine.
FROM python:3.11-bookworm
WORKDIR /app
COPY . .
# Numba looks for compiled code only where it may also write, which the user below may not in /app.
ENV NUMBA_CACHE_DIR=/var/cache/numba
RUN make setup PYTHON=python3.11 && rm -rf /root/.cache /root/.m2 node_modules /var/lib/apt/lists/*
RUN useradd --create-home app && mkdir -p /data/var && chown -R app /data $NUMBA_CACHE_DIR
# The rest of /data is for warehouses and catalogs: no connection may use the folder of the program's own files.
# In a container the port is reached through what publishes it. DEBUG stays off, and the keys have to be given.
ENV PATH=/app/.venv/bin:$PATH \
    DEBUG=false \
    PYTHONUNBUFFERED=1 \
    BIND=0.0.0.0:8000 \
    REPLICATOR_VAR_DIR=/data/var \
    REPLICATOR_LOG_URL=/data/changelog \
    REPLICATOR_JARS_DIR=/app/var/jars
USER app
VOLUME /data
EXPOSE 8000
CMD ["make", "migrate", "serve"]

# The compaction worker: Python, Spark and Java. Built from the repository's root:
#   docker build -f deploy/images/worker.Dockerfile -t transaction-metastore/worker .
ARG PYTHON=3.12.12-slim-bookworm
FROM python:${PYTHON} AS build
COPY . /source
RUN bash /source/deploy/images/build.sh /source /opt/metastore worker

FROM python:${PYTHON}
LABEL org.opencontainers.image.title="transaction-metastore worker" \
      org.opencontainers.image.description="Compacts ACID tables with Spark" \
      org.opencontainers.image.licenses="Apache-2.0"
# A JDK: a few classes are compiled against the Spark that is there, at the first job.
RUN mkdir -p /usr/share/man/man1 && apt-get update && apt-get install -y --no-install-recommends openjdk-17-jdk-headless procps tini \
    && rm -rf /var/lib/apt/lists/*
# PostgreSQL and Java want to know what the user is called.
RUN echo 'metastore:x:10001:10001::/tmp:/usr/sbin/nologin' >> /etc/passwd && echo 'metastore:x:10001:' >> /etc/group
COPY --from=build /opt/metastore /opt/metastore
COPY --from=build --chmod=755 /source/deploy/images/worker-entrypoint.sh /usr/local/bin/worker-entrypoint
ENV PATH=/opt/metastore/bin:$PATH PYTHONDONTWRITEBYTECODE=1 HOME=/tmp METASTORE_READY_FILE=/tmp/metastore-ready.json METASTORE_IMAGE=true
USER 10001:10001
WORKDIR /tmp
EXPOSE 9084
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
  CMD ["metastore", "health", "--alive"]
STOPSIGNAL SIGTERM
# An init: the JVM of a job outlives its parent, and somebody must bury it, or the worker takes it for alive.
ENTRYPOINT ["tini", "--", "worker-entrypoint"]
CMD ["worker"]

# The server: Python, no Java. Built from the repository's root:
#   docker build -f deploy/images/server.Dockerfile -t transaction-metastore/server .
# Runs as user 10001 with a read-only root file system; /tmp is all that it writes to.
ARG PYTHON=3.12.12-slim-bookworm
FROM python:${PYTHON} AS build
COPY . /source
RUN bash /source/deploy/images/build.sh /source /opt/metastore server

FROM python:${PYTHON}
LABEL org.opencontainers.image.title="transaction-metastore server" \
      org.opencontainers.image.description="A Hive-compatible transaction metastore on PostgreSQL" \
      org.opencontainers.image.licenses="Apache-2.0"
# PostgreSQL and Java want to know what the user is called.
RUN echo 'metastore:x:10001:10001::/tmp:/usr/sbin/nologin' >> /etc/passwd && echo 'metastore:x:10001:' >> /etc/group
COPY --from=build /opt/metastore /opt/metastore
ENV PATH=/opt/metastore/bin:$PATH PYTHONDONTWRITEBYTECODE=1 HOME=/tmp METASTORE_READY_FILE=/tmp/metastore-ready.json METASTORE_IMAGE=true
USER 10001:10001
WORKDIR /tmp
EXPOSE 9083 9084
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
  CMD ["metastore", "health", "--alive"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["metastore"]
CMD ["serve", "--data-dir", "/tmp/metastore"]

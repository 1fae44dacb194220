# Pumice as an image: no shell, no package manager, not root, and nothing to write but /journal and /tmp.
#   docker build -t pumice . && docker run --rm --read-only --tmpfs /tmp --tmpfs /journal:uid=10001 pumice run --until idle
# charts/pumice runs it in a cluster. image/lay_out.sh says what is in it; `nox -s image` measures and tries the same tree.
FROM debian:12-slim AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# The versions are those of Debian 12 on the day of the build: security updates are wanted.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates python3-venv && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY actors actors
COPY cluster cluster
COPY config config
COPY core core
COPY pumice pumice
COPY storage storage
COPY image image
RUN apt-get update && sh image/lay_out.sh /image /source

FROM scratch
COPY --from=build /image /
USER 10001:10001
WORKDIR /journal
ENV PATH=/opt/pumice/bin \
    LANG=C.UTF-8 \
    PUMICE_DB=/journal/pumice.db \
    PYTHONDONTWRITEBYTECODE=1 \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
ENTRYPOINT ["pumice"]
CMD ["run", "--kubeconfig", "in-cluster"]

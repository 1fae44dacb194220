# The scheduler of a cluster as an image: examples/deploy.yaml runs it.
#   docker build -t pumice . && docker run --rm pumice run --help
FROM python:3.11-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY actors actors
COPY cluster cluster
COPY config config
COPY core core
COPY pumice pumice
COPY storage storage
RUN python -m venv /opt/pumice && /opt/pumice/bin/pip install --no-cache-dir .

FROM python:3.11-slim
COPY --from=build /opt/pumice /opt/pumice
RUN useradd --uid 10001 --create-home pumice && mkdir /journal && chown pumice /journal
USER 10001
WORKDIR /journal
ENV PATH=/opt/pumice/bin:$PATH PUMICE_DB=/journal/pumice.db
ENTRYPOINT ["pumice"]
CMD ["run", "--kubeconfig", "in-cluster"]

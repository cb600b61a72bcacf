# syntax=docker/dockerfile:1
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md ./
COPY reconciler ./reconciler
COPY fixtures/demo ./fixtures/demo
RUN python -m venv /opt/reconciler \
 && /opt/reconciler/bin/pip install --no-cache-dir .

FROM python:3.12-slim
# git and ssh are wanted as new as the base image has them, with their security fixes
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends git openssh-client ca-certificates \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 10001 reconciler
COPY --from=build /opt/reconciler /opt/reconciler
USER 10001
WORKDIR /home/reconciler
ENV PATH=/opt/reconciler/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    RECONCILER_CACHE=/home/reconciler/cache
ENTRYPOINT ["reconciler"]
CMD ["run"]

# syntax=docker/dockerfile:1
# The digest of python:3.12-slim, as "sha256:…". It has no default: a build without it fails, so that every image names
# the exact base it was built on. `docker buildx imagetools inspect python:3.12-slim` prints today's.
ARG BASE_DIGEST

FROM python:3.12-slim@${BASE_DIGEST} AS build
WORKDIR /src
COPY requirements.lock requirements-build.lock pyproject.toml README.md LICENSE* ./
# pip refuses each download whose hash the locks do not name
RUN pip install --no-cache-dir --require-hashes --requirement requirements-build.lock \
 && python -m venv /opt/reconciler \
 && /opt/reconciler/bin/pip install --no-cache-dir --require-hashes --requirement requirements.lock
COPY reconciler ./reconciler
COPY fixtures/demo ./fixtures/demo
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
 && /opt/reconciler/bin/pip install --no-cache-dir --no-deps /wheels/*.whl

FROM python:3.12-slim@${BASE_DIGEST}
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

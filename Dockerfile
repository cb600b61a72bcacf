# syntax=docker/dockerfile:1
# docs/contributing/releasing.md contains the build command.
# The digest of python:3.12-slim, as "sha256:…". It has no default: a build without it fails, so that every image names
# its exact base image. `docker buildx imagetools inspect python:3.12-slim` prints the current digest.
ARG BASE_DIGEST
# The digest of golang:1.26, which builds helm and kustomize. It has no default for the same reason.
ARG GO_DIGEST

FROM golang:1.26@${GO_DIGEST} AS tools
# The versions are those of scripts/install_test_programs.sh, with which the tests run. Go checks each module with the
# checksum database. The programs are static, so that they also run in another base image.
RUN CGO_ENABLED=0 GOTOOLCHAIN=local GOBIN=/tools go install -trimpath -ldflags '-s -w' helm.sh/helm/v3/cmd/helm@v3.22.0 \
 && CGO_ENABLED=0 GOTOOLCHAIN=local GOBIN=/tools go install -trimpath -ldflags '-s -w' sigs.k8s.io/kustomize/kustomize/v5@v5.8.2

FROM python:3.12-slim@${BASE_DIGEST} AS build
WORKDIR /src
COPY requirements.lock requirements-build.lock pyproject.toml README.md LICENSE NOTICE ./
# pip refuses each download whose hash the locks do not name, and compiles the modules. The lock contains the extras
# forge-app, oidc, otel and signing.
RUN pip install --no-cache-dir --require-hashes --requirement requirements-build.lock \
 && python -m venv /opt/reconciler \
 && /opt/reconciler/bin/pip install --no-cache-dir --require-hashes --requirement requirements.lock
COPY reconciler ./reconciler
COPY fixtures/demo ./fixtures/demo
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
 && /opt/reconciler/bin/pip install --no-cache-dir --no-deps /wheels/*.whl

FROM python:3.12-slim@${BASE_DIGEST}
ARG VERSION
ARG REVISION
ARG SOURCE
ARG CREATED
LABEL org.opencontainers.image.title="reconciler" \
      org.opencontainers.image.description="A GitOps daemon that computes every cluster's package variants as reviewable drafts, with Git as its only database." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
# git, ssh and gpg are installed as new as the base image has them, with their security fixes.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends git openssh-client gnupg ca-certificates \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 10001 reconciler \
 && install --directory --owner=10001 --group=10001 --mode=0700 /var/cache/reconciler
COPY --from=build /opt/reconciler /opt/reconciler
COPY --from=tools /tools/helm /tools/kustomize /usr/local/bin/
COPY LICENSE NOTICE sbom.cdx.json /usr/share/doc/reconciler/
USER 10001
WORKDIR /home/reconciler
# The root file system can be read-only. Only /var/cache/reconciler and /tmp must be writable.
ENV PATH=/opt/reconciler/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    RECONCILER_CACHE=/var/cache/reconciler \
    RECONCILER_SERVER__LISTEN=0.0.0.0:8080
VOLUME /var/cache/reconciler
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=5m --retries=3 CMD ["reconciler", "health"]
ENTRYPOINT ["reconciler"]
CMD ["run"]

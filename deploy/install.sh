#!/bin/sh
# Installs what `make build` made: the binary with its runtimes in PREFIX/lib/forerun, a link to it in PREFIX/bin, and a systemd unit.
# A running server goes on with the old binary until it is restarted; data and settings are not touched.
set -eu
cd "$(dirname "$0")/.."
lib="$DESTDIR$PREFIX/lib/forerun" bin="$DESTDIR$PREFIX/bin" units="$DESTDIR$PREFIX/lib/systemd/system"
install -d -m 755 "$lib" "$bin" "$units"
rm -rf "$lib/runtimes.new"
mkdir "$lib/runtimes.new"
cp -RL bin/runtimes/. "$lib/runtimes.new"
chmod -R a+rX "$lib/runtimes.new"
install -m 755 bin/forerun "$lib/forerun.new"
rm -rf "$lib/runtimes"
mv "$lib/runtimes.new" "$lib/runtimes"
mv "$lib/forerun.new" "$lib/forerun"
ln -sfn ../lib/forerun/forerun "$bin/forerun"
sed "s|@BIN@|$PREFIX/bin|" deploy/forerun.service > "$units/forerun.service"
chmod 644 "$units/forerun.service"
settings="$DESTDIR/etc/forerun.conf"
[ -e "$settings" ] || install -D -m 644 deploy/forerun.conf "$settings"
echo "installed $("$lib/forerun" version) in $DESTDIR$PREFIX"
echo "  start it now and at each boot:  systemctl daemon-reload && systemctl enable --now forerun"
echo "  after an upgrade:               systemctl daemon-reload && systemctl restart forerun"

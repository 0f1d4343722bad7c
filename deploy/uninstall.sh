#!/bin/sh
# Removes what install.sh installed. Data (/var/lib/forerun) and settings (/etc/forerun.conf) stay.
set -eu
if [ -z "$DESTDIR" ] && [ -d /run/systemd/system ]; then systemctl disable --now forerun 2>/dev/null || true; fi
rm -f "$DESTDIR$PREFIX/bin/forerun" "$DESTDIR$PREFIX/lib/systemd/system/forerun.service"
rm -rf "$DESTDIR$PREFIX/lib/forerun"
echo "removed Forerun from $DESTDIR$PREFIX; data in /var/lib/forerun and settings in /etc/forerun.conf stay"

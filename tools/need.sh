#!/usr/bin/env bash
# Makes sure that the programs the make targets use are on the machine, and installs those that are missing with apt:
#   tools/need.sh go node python redis ...
# What is there is left alone. As an ordinary user without sudo it says what an administrator has to install.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

say() { echo "$*" >&2; }
die() { say "forerun: $*"; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

# install PACKAGE...: with apt, as root or through sudo.
install() {
    local become=()
    has apt-get || die "this machine lacks $* (Debian's names), and has no apt-get to install them with: install them, then run make again."
    if [ "$(id -u)" -ne 0 ]; then
        { has sudo && sudo -n true 2>/dev/null; } ||
            die "this machine lacks $*, and you may not install them. Ask an administrator to run: apt-get install $*"
        become=(sudo -n)
    fi
    say "installing $* ..."
    "${become[@]}" apt-get update -qq || die "the list of Debian's packages cannot be fetched: look at the message above."
    "${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null ||
        die "apt-get could not install $*: look at the message above."
}

# go_fits: the go in PATH builds this module, if need be with a newer toolchain that it fetches itself.
go_fits() { has go && go list -m >/dev/null 2>&1; }

need_go() {
    go_fits && return
    if ! has go; then
        install golang-go ca-certificates git
        go_fits && return
    fi
    # An old go cannot fetch a newer one by itself, but it can fetch modules, and toolchains are modules too.
    local version arch module dir
    version=$(sed -n 's/^toolchain go//p; t' go.mod)
    version=${version:-$(sed -n 's/^go //p' go.mod)}
    arch=$(go env GOARCH)
    module="golang.org/toolchain@v0.0.1-go$version.linux-$arch"
    say "fetching Go $version ..."
    dir=$(cd / && GOTOOLCHAIN=local GOFLAGS= go mod download -json "$module" | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
    [ -n "$dir" ] || die "Go $version could not be fetched: set GOPROXY to a module proxy that this machine reaches, or install Go $version."
    rm -rf .forerun/go
    mkdir -p .forerun
    cp -R "$dir" .forerun/go
    chmod -R u+w .forerun/go
    chmod +x .forerun/go/bin/* .forerun/go/pkg/tool/*/*
    PATH="$root/.forerun/go/bin:$PATH" go_fits || die "Go $version was fetched, but does not build this module."
}

node_fits() { has node && has npm && node -e 'process.exit(parseInt(process.versions.node) >= 18 ? 0 : 1)'; }

need_node() {
    node_fits && return
    if has node && has npm; then
        die "$(command -v node) is $(node --version): Forerun's tools need Node 18 or newer. Install it, or put it first in PATH."
    fi
    install nodejs npm
    node_fits || die "the distribution's Node is $(node --version): Forerun's tools need Node 18 or newer."
}

python_fits() { has python3 && python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; }

need_python() {
    python_fits && return
    install python3 python3-venv python3-pip
    python_fits || die "$(command -v python3) is $(python3 --version) or lacks venv: Forerun needs Python 3.10 or newer with its venv module."
}

java_fits() { has javac && has mvn && [ "$(javac -version 2>&1 | sed 's/^javac \([0-9]*\).*/\1/')" -ge 17 ]; }

need_java() {
    java_fits && return
    if has javac && has mvn; then
        die "$(command -v javac) is $(javac -version 2>&1): the Java runtime needs JDK 17 or newer. Install it, or put it first in PATH."
    fi
    install default-jdk-headless maven
    java_fits || die "the distribution's JDK is older than 17, which the Java runtime needs."
}

need_redis() { has redis-server || [ -x /usr/bin/redis-server ] || install redis-server; }

need_tools() { # what the end-to-end tests look at the machine with
    local missing=()
    has ip || missing+=(iproute2)
    has setpriv && has lsns || missing+=(util-linux)
    has git || missing+=(git)
    [ ${#missing[@]} -eq 0 ] || install "${missing[@]}"
}

need_browser() { # which the test of the console drives
    has chromium-headless-shell || has chromium || has google-chrome || install chromium-headless-shell
}

for what in "$@"; do "need_$what"; done

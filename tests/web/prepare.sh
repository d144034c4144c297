#!/usr/bin/env bash
# What `make test-web` needs besides Python: a browser, a proxy, and tools of node, into the directory that is given.
set -euo pipefail
tools="$1"
PATH="$PATH:/usr/sbin"

# have PROGRAM PACKAGE VARIABLE: it is there, or named by the variable, or installed where that may be
have() {
  if [ -n "${!3:-}" ] || command -v "$1" >/dev/null; then return; fi
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing $2."
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y "$2" >/dev/null
  else
    echo "There is no $1: install it, or name one in $3." >&2
    exit 1
  fi
}

command -v chromium-browser >/dev/null || have chromium chromium COVEY_CHROMIUM
have nginx nginx-light COVEY_NGINX
have openssl openssl COVEY_OPENSSL
if [ ! -e "$tools/node_modules/axe-core/axe.min.js" ] || [ ! -x "$tools/node_modules/.bin/tsc" ] || [ ! -d "$tools/node_modules/esbuild" ]; then
  mkdir -p "$tools"
  npm install --prefix "$tools" --no-save --no-package-lock --no-fund --no-audit --silent typescript@7.0.2 axe-core@4.14.0 markdown-it@15.0.3 esbuild@0.28.2
fi

#!/usr/bin/env bash
# What `make test-web` needs besides Python: a browser, and tools of node, into the directory that is given.
set -euo pipefail
tools="$1"
if [ -z "${COVEY_CHROMIUM:-}" ] && ! command -v chromium >/dev/null && ! command -v chromium-browser >/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing chromium."
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y chromium >/dev/null
  else
    echo "There is no chromium: install it, or name one in COVEY_CHROMIUM." >&2
    exit 1
  fi
fi
if [ ! -e "$tools/node_modules/axe-core/axe.min.js" ] || [ ! -x "$tools/node_modules/.bin/tsc" ] || [ ! -d "$tools/node_modules/esbuild" ]; then
  mkdir -p "$tools"
  npm install --prefix "$tools" --no-save --no-package-lock --no-fund --no-audit --silent typescript@7.0.2 axe-core@4.14.0 markdown-it@15.0.3 mdurl@2.1.0 uc.micro@3.0.0 punycode.js@2.3.1 esbuild@0.28.2
fi

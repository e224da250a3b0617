#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# Writes the page of 'insula storage --html' of a store of its own, with files that have hostile names, and looks at it in
# Chromium. INSULA= is the program. As root: the store is the machine's kind, with a home of nobody's.
set -eu
here=$(dirname "$0")
[ "$(id -u)" = 0 ] || { echo "storage-page: requires root" >&2; exit 1; }
: "${INSULA:?is the program}"
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export XDG_DATA_HOME="$place/data" HOME="$place"
store=$place/store
insula() { "$INSULA" "$@" >/dev/null; }
insula init "$store"
insula user add nobody --store "$store"
insula identity new tester --team ABCDE12345
insula identity export tester --certificate "$place/root.pem"
insula trust add "$place/root.pem" --store "$store"
for name in Notes Films Maps; do
  mkdir "$place/$name"
  insula new-app "$name" "$place/$name"
  insula sign "$place/$name/$name.app" --identity tester
  insula install "$place/$name/$name.app" --store "$store"
  id=org.example.$(printf %s "$name" | tr A-Z a-z)
  data=$store/tree/$("$INSULA" path "$id" home --user nobody --store "$store" | sed 's|.*/tree/||')
  head -c 3000000 /dev/zero >"$data/Library/Caches/cache"
  head -c 500000 /dev/zero >"$data/tmp/temporary"
done
# The last one's names are hostile.
fallocate -l 40000000 "$data/Documents/film<script>alert(1).mp4"
printf x >"$data/Library/$(printf '\342\200\256<img src=x onerror=alert(1)>\033[31m')"
printf x >"$data/Library/Application Support/loose & \"quoted\""
chown -R nobody "$data"
"$INSULA" storage --store "$store" --html "$place/storage.html" >/dev/null
python3 "$here/page.py" --browser "$place/storage.html"

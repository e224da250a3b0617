#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# Unmounts what up.sh has mounted; the store stays: mount-scripts/down.sh [STORE | MOUNTPOINT]
set -eu
cd "$(dirname "$0")/.."
. mount-scripts/need.sh

# shellcheck disable=SC2046 # several words on purpose
insula=$(swift build $(release_flags) --show-bin-path)/insula
[ -x "$insula" ] || insula=$(command -v insula) || fail "there is no insula here; mount-scripts/up.sh builds it"
"$insula" unmount "$@"
say "Unmounted. The store is kept; mount-scripts/up.sh mounts it again."

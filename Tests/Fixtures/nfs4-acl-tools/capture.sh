#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# Prints the bytes that nfs4_setfacl sends for each line of its input: 'f' or 'd' (a file or a directory), a blank, a list.
# Tests/PolicyTests/NFS4Captured.swift is made from that. Takes nfs4-acl-tools, cc and xxd; needs neither NFS nor root.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -shared -fPIC -o "$work/keep.so" "$here/keep-in-file.c"
mkdir "$work/d"
touch "$work/f"
while read -r kind list; do
  rm -f "$work/$kind.nfs4"
  LD_PRELOAD="$work/keep.so" nfs4_setfacl -s "$list" "$work/$kind"
  printf '%s %s %s\n' "$kind" "$list" "$(xxd -p "$work/$kind.nfs4" | tr -d '\n')"
done

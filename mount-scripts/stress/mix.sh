#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# Workers of stress.sh, each in a process of its own: mix.sh WORKER DIRECTORY
# Environment: tree (an archive), files (how many it has), scale (how much to do).
set -euo pipefail
fail() { echo "$worker: $*" >&2; exit 1; }

unpack() {
  for _ in $(seq "$((scale * 2))"); do
    mkdir "$1"
    tar -xf "$tree" -C "$1"
    [ "$(find "$1" -type f | wc -l)" = "$files" ] || fail "find sees $(find "$1" -type f | wc -l) of $files files"
    # Whoever unpacks is the owner.
    differing=$(tar -df "$tree" -C "$1" 2>&1 | grep -vE '(Uid|Gid) differs' || true)
    [ -z "$differing" ] || fail "what was unpacked differs: $differing"
    rm -rf "$1"
    [ ! -e "$1" ] || fail "$1 is still there"
  done
  # Something to compare with the store.
  mkdir kept && tar -xf "$tree" -C kept
}
work_unpack() { unpack one; }
work_unpacktoo() { unpack two; }

work_find() {
  for _ in $(seq "$((scale * 8))"); do
    # What comes and goes meanwhile may be missed.
    find .. -ls >/dev/null 2>&1 || true
    sleep 0.05
  done
}

work_git() {
  for round in $(seq "$scale"); do
    git init -q "r$round"
    tar -xf "$tree" -C "r$round" ./1
    (
      cd "r$round"
      git config user.name stress && git config user.email stress@example.org && git config gc.auto 0
      for commit in 1 2 3; do
        echo "$commit" >>1/new
        git add -A && git commit -qm "$commit"
        [ -z "$(git status --porcelain)" ] || fail "git sees changes"
      done
      git gc -q && git fsck --strict >/dev/null 2>&1 && git checkout -q HEAD~2 && [ "$(wc -l <1/new)" = 1 ] || fail "git"
    )
  done
}

work_rename() {
  mkdir a b
  echo content >a/file
  mkdir -p a/dir/deep && echo below >a/dir/deep/file
  for _ in $(seq "$((scale * 60))"); do
    mv a/file b/renamed && mv a/dir b/moved
    [ "$(cat b/renamed)" = content ] && [ "$(cat b/moved/deep/file)" = below ] || fail "lost by renaming"
    [ ! -e a/file ] && [ ! -e a/dir ] || fail "an old name is still there"
    ln b/renamed b/hard && [ "$(stat -c %h b/hard)" = 2 ] && mv -f b/hard b/renamed.2 && rm b/renamed.2
    mv b/renamed a/file && mv b/moved a/dir
    [ "$(stat -c %h a/file)" = 1 ] || fail "link count"
    echo other >b/over && echo newer >b/src && mv -f b/src b/over && [ "$(cat b/over)" = newer ] && rm b/over
  done
}

# Several processes add to one number; a lock that fails to exclude loses some.
work_flock() {
  echo 0 >number
  pids=()
  for _ in 1 2 3 4 5 6; do
    (for _ in $(seq "$((scale * 25))"); do
      # shellcheck disable=SC2016
      flock lock sh -c 'read -r n <number; echo $((n + 1)) >number'
    done) &
    pids+=("$!")
  done
  for pid in "${pids[@]}"; do wait "$pid"; done
  [ "$(cat number)" = "$((6 * scale * 25))" ] || fail "counted to $(cat number)"
}

# The same with POSIX locks.
work_sqlite() {
  sqlite3 db 'create table t(n integer); insert into t values(0);'
  pids=()
  for _ in 1 2 3; do
    (for _ in $(seq "$((scale * 10))"); do sqlite3 -cmd '.timeout 60000' db 'update t set n = n + 1;'; done) &
    pids+=("$!")
  done
  for pid in "${pids[@]}"; do wait "$pid"; done
  [ "$(sqlite3 db 'select n from t')" = "$((3 * scale * 10))" ] || fail "counted to $(sqlite3 db 'select n from t')"
  [ "$(sqlite3 db 'pragma integrity_check')" = ok ] || fail "damaged"
}

work_append() {
  pids=()
  for writer in 1 2 3 4; do
    (for line in $(seq "$((scale * 100))"); do echo "$writer $line" >>log; done) &
    pids+=("$!")
  done
  for pid in "${pids[@]}"; do wait "$pid"; done
  [ "$(wc -l <log)" = "$((4 * scale * 100))" ] || fail "$(wc -l <log) lines"
  [ "$(sort -u log | wc -l)" = "$((4 * scale * 100))" ] || fail "lines are torn"
}

# mkdir is a lock as well; and all that races for one name must agree who has won.
work_exclusive() {
  for round in $(seq "$((scale * 20))"); do
    pids=() won=0
    for _ in 1 2 3 4; do
      mkdir "m$round" 2>/dev/null &
      pids+=("$!")
    done
    for pid in "${pids[@]}"; do wait "$pid" && won=$((won + 1)); done
    [ "$won" = 1 ] || fail "$won made one directory"
    rmdir "m$round"
  done
}

# Files without a name go on.
work_unlinked() {
  for round in $(seq "$((scale * 40))"); do
    exec 7<>"u$round"
    rm "u$round"
    echo "text $round" >&7
    [ "$(stat -L -c '%h %s' /proc/self/fd/7)" = "0 $((6 + ${#round}))" ] || fail "$(stat -L -c '%h %s' /proc/self/fd/7)"
    [ "$(cat /proc/$$/fd/7)" = "text $round" ] || fail "text lost"
    exec 7>&-
  done
}

# Many are open at once, and read in another order than they were made in.
work_many() {
  mkdir many
  for n in $(seq "$((scale * 300))"); do echo "$n" >"many/$n"; done
  for _ in 1 2 3; do
    for n in $(seq "$((scale * 300))" -7 1); do
      read -r text <"many/$n"
      [ "$text" = "$n" ] || fail "$n contains $text"
    done
    # What is read about a name must be that name's own.
    find many -type f -printf '%f %s\n' | while read -r n size; do
      [ "$size" = "$((${#n} + 1))" ] || fail "$n has $size bytes"
    done
  done
  for n in $(seq "$((scale * 300))"); do ln -s "$n" "many/l$n"; done
  for n in $(seq "$((scale * 300))"); do [ "$(readlink "many/l$n")" = "$n" ] || fail "link $n"; done
}

worker=$1
cd "$2"
"$worker"

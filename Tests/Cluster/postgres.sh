#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
#
# PostgreSQL in a directory, with a checksum on each page: pgbench runs, the server is killed under it and started again,
# three times. What was acknowledged must be there, the accounts must add up, and no page may be damaged.
# usage: postgres.sh DIRECTORY USER
# USER is who PostgreSQL runs as (not root), and the directory is theirs. Debian's postgresql has the programs.
set -euo pipefail

directory=$1 user=$2
programs=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
data=$directory/data log=$directory/log
# The path of a socket is short.
sockets=$(mktemp -d /tmp/insula-pg-XXXXXX)
chown "$user" "$sockets"
become() {
  cd "$directory"
  exec setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups -- env PGHOST="$sockets" "$@"
}
as() { (become "$@"); }
fail() { echo "postgres.sh: $*" >&2; tail -n 20 "$log" >&2 || true; exit 1; }
ask() { as psql -XAtqc "$1" bank; }
# Our own child, so that it is gone when it was killed, whatever the machine's first process does about those.
start() {
  server=0
  for _ in $(seq 1200); do
    # What an earlier one has left ends by itself, and until then there is no other.
    kill -0 "$server" 2>/dev/null && [ "$server" != 0 ] || {
      become "$programs/postgres" -D "$data" >>"$log" 2>&1 &
      server=$!
    }
    as "$programs/pg_isready" -q && return
    sleep 0.1
  done
  fail 'it does not start'
}
server=0
trap '[ "$server" = 0 ] || kill -QUIT "$server" 2>/dev/null || true; rm -rf "$sockets"' EXIT

as "$programs/initdb" -D "$data" --data-checksums -A trust >/dev/null
printf "listen_addresses = ''\nunix_socket_directories = '%s'\nautovacuum_naptime = 5\n" "$sockets" |
  as tee -a "$data/postgresql.conf" >/dev/null
start
as createdb bank
as pgbench -iq -s 2 bank 2>/dev/null
ask 'create table acknowledged (number int primary key)'
number=0
for round in 1 2 3; do
  as pgbench -n -c 4 -T 60 bank >/dev/null 2>&1 &
  bench=$!
  # Each of these was told to be done before the next began.
  end=$((SECONDS + 5))
  while [ "$SECONDS" -lt "$end" ]; do
    ask "insert into acknowledged values ($((number + 1)))" || fail 'a row was refused'
    number=$((number + 1))
  done
  kill -9 "$server"
  wait "$bench" "$server" 2>/dev/null || true
  start
  [ "$(ask 'select count(*), max(number) from acknowledged')" = "$number|$number" ] ||
    fail "$number rows were acknowledged, there are $(ask 'select count(*) from acknowledged')"
  sums=$(ask 'select sum(abalance) from pgbench_accounts; select sum(tbalance) from pgbench_tellers;
    select sum(bbalance) from pgbench_branches; select sum(delta) from pgbench_history')
  [ "$(sort -u <<<"$sums" | wc -l)" = 1 ] || fail "the accounts do not add up: $sums"
done
history=$(ask 'select count(*) from pgbench_history')
[ "$history" -gt 100 ] || fail "pgbench has done $history transactions"
as "$programs/pg_amcheck" --install-missing bank >/dev/null || fail 'pg_amcheck finds damage'
kill -INT "$server"
wait "$server" || fail 'it does not end'
as "$programs/pg_checksums" --check -D "$data" | grep -qx 'Bad checksums:  0' || fail 'a page is damaged'
echo "postgres: killed three times; $number rows that were acknowledged and $history transactions are there, no page is damaged"

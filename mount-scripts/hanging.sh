#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Insula authors
# Called by test.sh when its tests have not ended in time: mount-scripts/hanging.sh PID SECONDS
# Shows what everything that runs waits for, in the kernel and in the tests' own threads, and ends what descends from PID.
set -u

# descendants PID : the numbers of all processes that come from it, but for us and what comes from us.
descendants() {
  ps -e -o pid=,ppid= | awk -v first="$1" -v us="$$" '
    { parent[$1] = $2 }
    END {
      for (process in parent) {
        for (at = process; at != first && at != us && at in parent; ) at = parent[at]
        if (at == first && process != first) print process
      }
    }'
}

words() { tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline"; }

printf '\nThe tests have not ended in %s s. What runs:\n' "$2"
ps -e -o pid,ppid,user,stat,etimes,wchan:32,args | grep -v '\]$'
processes=$(descendants "$1")
if [ "$(id -u)" -eq 0 ]; then
  for process in $processes; do
    printf '\nIn the kernel, the threads of %s %s\n' "$process" "$(words "$process" | cut -c1-100)"
    for thread in "/proc/$process/task"/*; do
      [ "$process" = "${thread##*/}" ] || printf 'thread %s:\n' "${thread##*/}"
      cat "$thread/stack" 2>/dev/null
    done
  done
fi
for process in $processes; do
  case $(words "$process") in *.xctest*) ;; *) continue ;; esac
  printf '\nIn the program, the threads of %s:\n' "$process"
  # Swift's runtime writes them down in the process itself, and lets it go on.
  kill -QUIT "$process"
  sleep 60
done
# What the tests have said last is still to come through awk, which ends by itself.
for process in $(descendants "$1"); do
  case $(words "$process") in awk*) ;; *) kill -KILL "$process" ;; esac
done
printf '\nThe tests were ended: they had not ended in %s s.\n' "$2"

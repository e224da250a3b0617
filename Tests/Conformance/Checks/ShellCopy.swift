// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Shell functions: `plant DIR` makes a tree with all that ordinary copies have to keep, `census DIR` prints
/// it.
///
/// The census leaves out what differs between equal trees: inode numbers, sizes of directories, change times.
/// All but plain files get a time in the past: rsync leaves the time of a link or fifo made in the same
/// second.
let sampleTree = """
  plant() {
    mkdir -p "$1/dir/sub/deep" "$1/empty" "$1/closed"
    echo text > "$1/file"; printf 'no newline' > "$1/dir/other"; : > "$1/dir/nothing"
    head -c 300000 /dev/urandom > "$1/dir/sub/large"
    ln "$1/file" "$1/dir/hard"; ln "$1/dir/other" "$1/dir/sub/hard2"
    ln -s file "$1/link"; ln -s missing "$1/dangling"; ln -s ../dir "$1/dir/loop"
    mkfifo "$1/fifo"
    printf x > "$1/with space"; printf x > "$1/-dash"; printf x > "$1/ünï"
    chmod 750 "$1/dir"; chmod 4711 "$1/dir/other"; chmod 400 "$1/dir/nothing"; chmod 1777 "$1/empty"
    touch -d '2001-02-03 04:05:06.123456789' "$1/file"; touch -d '1969-12-31 23:59:58.5' "$1/dir/other"
    touch -h -d '2011-11-11 11:11:11.111111111' "$1/link" "$1/dangling" "$1/dir/loop" "$1/fifo"
    touch -d '2031-01-01' "$1/dir/sub/large"
    touch -d '1999-09-09 09:09:09.999999999' "$1/empty" "$1/dir/sub/deep" "$1/dir/sub" "$1/dir" "$1/closed"
    chmod 500 "$1/closed"; touch -d '2005-05-05 05:05:05.5' "$1"
  }
  census() {
    (cd "$1"; find . -type d -printf '%P d %m %T@ %n %U \
  %G\\n' -o -printf '%P %y %m %s %T@ %n %U %G %l\\n' | sort
      find . -type f -exec cksum {} + | sort)
  }

  """

func shellCopies(_ check: inout Checks) {
  check("shell.cp.archive-keeps-everything", tools: ["cp", "find", "cksum"]) { t in
    try t.sh(sampleTree + "plant a; cp -a a b; same \"$(census a)\" \"$(census b)\"")
  }
  check("shell.cp.archive-twice-over-itself", tools: ["cp", "find"]) { t in
    try t.sh(
      sampleTree
        + "plant a; cp -a a b; cp -a --remove-destination a/. b; same \"$(census a)\" \"$(census b)\"")
  }
  check("shell.cp.archive-keeps-xattrs", tools: ["cp", "setfattr", "getfattr"]) { t in
    try t.needsUserXattrs()
    try t.sh(
      """
      mkdir a; echo x > a/f; setfattr -n user.one -v 1 a/f; setfattr -n user.two -v 0x00ff a
      cp -a a b; (cd a; getfattr -R -d -m ^user -e hex .) > a1; (cd b; getfattr -R -d -m ^user -e hex .) > b1
      grep -q user.two a1; cmp a1 b1
      """)
  }
  check("shell.cp.sparse-reflink-and-plain-are-equal", tools: ["cp", "cmp", "dd"]) { t in
    try t.sh(
      """
      dd if=/dev/urandom of=a bs=4k count=3 seek=100 2> /dev/null; truncate -s 2M a
      cp --sparse=always a b; cp --sparse=never a c; cp --reflink=auto a d; cat a > e
      for f in b c d e; do cmp a $f; done; test $(stat -c %b b) -lt $(stat -c %b c)
      """)
  }
  check("shell.cp.flags", tools: ["cp"]) { t in
    try t.sh(
      """
      echo 1 > a; echo 2 > b; cp -n a b || true; same "$(cat b)" 2; cp -f a b; same "$(cat b)" 1
      cp -l a hard; same $(stat -c %h a) 2; cp -s a soft; same "$(readlink soft)" a
      chmod 444 b; echo 3 > c; cp -f c b; same "$(cat b)" 3; cp -u a c; same "$(cat c)" 3
      mkdir d; cp a b c d; same $(ls d | wc -l) 3; cp --backup=numbered a d/a; test -f d/a.~1~
      """)
  }
  check("shell.mv.within-a-directory-and-into-another", tools: ["mv"]) { t in
    try t.sh(
      sampleTree + """
        plant a; before=$(census a); mv a b; same "$before" "$(census b)"; mkdir c; mv b c/; test ! -e b
        same "$before" "$(census c/b)"
        """)
  }
  check("shell.mv.over-files-and-directories", tools: ["mv"]) { t in
    try t.sh(
      """
      echo 1 > a; echo 2 > b; mv a b; same "$(cat b)" 1; mkdir d e; touch d/f; mv -T d e; same "$(ls e)" f
      mkdir d; if mv -T d e 2> /dev/null; then exit 1; fi
      echo 3 > a; mv -n a b || true; same "$(cat b)" 1; same "$(cat a)" 3; mv -b a b; same "$(cat b~)" 1
      if mv e e/sub 2> /dev/null; then exit 1; fi
      """)
  }
  check("shell.mv.to-another-filesystem-and-back", tools: ["mv", "mktemp"]) { t in
    // The time of the directory itself is of the move.
    let output = try t.sh(
      sampleTree + """
        far=$(mktemp -d /dev/shm/conformance.XXXXXX) || { echo SKIP; exit 0; }; trap 'rm -rf "$far"' EXIT
        test $(stat -c %d .) != $(stat -c %d "$far") || { echo SKIP; exit 0; }
        plant a; before=$(census a); mv a "$far/a"; test ! -e a; mv "$far/a" b; same "$before" "$(census b)"
        """)
    if output.contains("SKIP") { throw Skip(reason: "/dev/shm is not there or not another filesystem") }
  }
  check("shell.ln.kinds-and-force", tools: ["ln"]) { t in
    try t.sh(
      """
      echo x > a; ln a b; ln -s a c; ln -sf b c; same "$(readlink c)" b; ln -f a c; same $(stat -c %h a) 3
      mkdir d; ln -s d e; ln -sfn a e; same "$(readlink e)" a; ln -sr d/../a d/up; same "$(cat d/up)" x
      if ln a b 2> /dev/null; then exit 1; fi
      """)
  }
  check("shell.install.mode-and-directories", tools: ["install"]) { t in
    try t.sh(
      """
      echo x > a; install -m 4711 a b; same $(stat -c %a b) 4711; \
      install -d -m 700 p/q/r; same $(stat -c %a p/q/r) 700
      install -D -m 644 a s/t/u; same "$(cat s/t/u)" x; touch -d 2001-01-01 a; install -p a c
      same $(stat -c %Y a) $(stat -c %Y c); install -b a b; test -f b~
      """)
  }
  check("shell.rsync.aHX-and-a-second-run-transfers-nothing", tools: ["rsync", "find"]) { t in
    try t.sh(
      sampleTree + """
        plant a; rsync -aHX a/ b/; same "$(census a)" "$(census b)"; same "$(rsync -aHXi a/ b/)" ""
        same "$(rsync -aHXic a/ b/)" ""; echo new >> 'a/with space'; same "$(rsync -aHXi a/ b/ | wc -l)" 1
        rm a/fifo; touch -d 2004-04-04 a; rsync -aHX --delete a/ b/; \
        test ! -e b/fifo; same "$(census a)" "$(census b)"
        """)
  }
  check("shell.rsync.aHAX", tools: ["rsync", "find"]) { t in
    try t.sh(
      sampleTree
        + "plant a; rsync -aHAX a/ b/; same \"$(census a)\" \"$(census b)\"; "
        + "same \"$(rsync -aHAXi a/ b/)\" ''"
    )
  }
  check("shell.rsync.inplace-and-sparse", tools: ["rsync", "cmp"]) { t in
    try t.sh(
      """
      head -c 200000 /dev/urandom > a; rsync a b; inode=$(stat -c %i b); \
      printf XX | dd of=a bs=1 seek=1000 conv=notrunc 2>/dev/null
      touch -d 2020-01-01 a; rsync --inplace a b; cmp a b; same $(stat -c %i b) $inode
      truncate -s 1M c; rsync -S c d; cmp c d
      """)
  }
  check("shell.chown.recursive-by-root", .root, tools: ["chown"]) { t in
    try t.sh(
      sampleTree + """
        plant a; chown -R 1234:5678 a; same "$(find a ! -type l ! -uid 1234 | wc -l)" 0
        chown -hR 4321 a; same "$(find a ! -uid 4321 | wc -l)" 0; same "$(find a ! -gid 5678 | wc -l)" 0
        chgrp -R 99 a; same "$(find a -gid 99 ! -type l | wc -l)" "$(find a ! -type l | wc -l)"
        """)
  }
  check("shell.cp.archive-of-another-users-tree-by-root", .root, tools: ["cp", "chown", "find"]) { t in
    try t.sh(sampleTree + "plant a; chown -hR 1234:5678 a; cp -a a b; same \"$(census a)\" \"$(census b)\"")
  }
}

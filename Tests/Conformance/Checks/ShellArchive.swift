// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

func shellArchives(_ check: inout Checks) {
  check("shell.tar.create-extract-compare", tools: ["tar", "find"]) { t in
    try t.sh(
      sampleTree + """
        plant a; tar -cf a.tar --format=posix a; mkdir b; \
        tar -xpf a.tar -C b; same "$(census a)" "$(census b/a)"
        tar -df a.tar
        """)
  }
  check("shell.tar.xattrs", tools: ["tar", "setfattr", "getfattr"]) { t in
    try t.needsUserXattrs()
    try t.sh(
      """
      mkdir a; echo x > a/f; setfattr -n user.one -v value a/f
      tar --xattrs -cf a.tar a; mkdir b; tar --xattrs -xf a.tar -C b
      same "$(getfattr -n user.one --only-values b/a/f)" value
      """)
  }
  check("shell.tar.sparse", tools: ["tar", "cmp"]) { t in
    try t.sh(
      """
      truncate -s 4M a; printf data | dd of=a bs=1 seek=2000000 conv=notrunc 2> /dev/null
      tar -Scf a.tar a; test $(stat -c %s a.tar) -lt 100000; mkdir b; tar -xf a.tar -C b; cmp a b/a
      """)
  }
  check("shell.tar.pipe-copy", tools: ["tar", "find"]) { t in
    try t.sh(
      sampleTree
        + "plant a; mkdir b; tar -C a --format=posix -cf - . | "
        + "tar -C b -xpf -; same \"$(census a)\" \"$(census b)\""
    )
  }
  check("shell.tar.append-update-delete", tools: ["tar"]) { t in
    try t.sh(
      """
      echo 1 > a; echo 2 > b; tar -cf t.tar a; tar -rf t.tar b; same "$(tar -tf t.tar | tr -d '\\n')" ab
      tar --delete -f t.tar a; same "$(tar -tf t.tar)" b
      """)
  }
  check("shell.gzip.round-trip", tools: ["gzip", "cmp"]) { t in
    try t.sh(
      """
      head -c 500000 /dev/urandom > a; cp a keep; touch -d 2001-01-01 a; chmod 640 a; gzip a; test ! -e a
      same $(stat -c %a:%Y a.gz) 640:$(date -d 2001-01-01 +%s); gunzip a.gz; cmp a keep
      """)
  }
  check("shell.xz.round-trip", tools: ["xz", "cmp"]) { t in
    try t.sh("seq 20000 > a; cp a keep; xz -0 a; test ! -e a; unxz a.xz; cmp a keep")
  }
  check("shell.zip.round-trip", tools: ["zip", "unzip", "diff"]) { t in
    try t.sh(
      "mkdir -p a/b; seq 1000 > a/b/c; ln -s b a/l; zip -qry a.zip a; "
        + "mkdir o; cd o; unzip -q ../a.zip; diff -r ../a a"
    )
  }
  check("shell.cpio.round-trip", tools: ["cpio", "find"]) { t in
    try t.sh(
      "mkdir -p a/b; seq 1000 > a/b/c; ln a/b/c a/d; "
        + "find a -depth -print0 | cpio -0pdm --quiet o; diff -r a o/a"
    )
  }
  check("shell.dd.notrunc-seek-skip-sparse", tools: ["dd", "cmp"]) { t in
    try t.sh(
      """
      printf 0123456789 > a; printf XY | \
      dd of=a bs=1 seek=3 conv=notrunc status=none; same "$(cat a)" 012XY56789
      dd if=a of=b bs=1 skip=3 count=2 status=none; same "$(cat b)" XY
      truncate -s 1M c; dd if=c of=d bs=64k conv=sparse status=none; cmp c d; test $(stat -c %b d) -lt 100
      printf abc | dd of=a bs=1 status=none; same "$(cat a)" abc; \
      dd if=a of=e oflag=append conv=notrunc status=none
      dd if=a of=e oflag=append conv=notrunc status=none; same "$(cat e)" abcabc
      dd if=/dev/zero of=f bs=4096 count=2 oflag=sync conv=fsync status=none; same $(stat -c %s f) 8192
      """)
  }
  check("shell.dd.direct", tools: ["dd", "cmp"]) { t in
    let (status, output) = try t.shell("dd if=/dev/zero of=probe bs=4096 count=1 oflag=direct status=none")
    guard status == 0 else { throw t.lacking("no O_DIRECT here: \(output.prefix(80))") }
    try t.sh(
      """
      head -c 409600 /dev/urandom > a; dd if=a of=b bs=4096 oflag=direct status=none; cmp a b
      dd if=b of=c bs=8192 iflag=direct status=none; cmp a c
      """)
  }
  check("shell.split-and-cat", tools: ["split", "cmp"]) { t in
    try t.sh("seq 50000 > a; split -b 10000 a part.; cat part.* > b; cmp a b")
  }
  check("shell.shred-and-truncate", tools: ["shred", "truncate"]) { t in
    try t.sh(
      "seq 1000 > a; shred -n 1 a; shred -n 1 -u a; test ! -e a; truncate -s +100 b; same $(stat -c %s b) 100"
    )
  }
}

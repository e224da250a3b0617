// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

func shellTools(_ check: inout Checks) {
  check("shell.find.newer-links-perm-size", tools: ["find"]) { t in
    try t.sh(
      """
      touch -d 2001-01-01 old; touch -d 2002-01-01 mark; touch -d 2003-01-01 new; ln old twin; chmod 4755 new
      head -c 5000 /dev/zero > big; touch -d 2000-01-01 big
      same "$(find . -newer mark -type f)" ./new; \
      same "$(find . -links 2 -type f | sort | tr -d '\\n')" ./old./twin
      same "$(find . -perm -4000)" ./new; same "$(find . \
      -size +4k)" ./big; same "$(find . -samefile old | wc -l)" 2
      same "$(find . -inum $(stat -c %i big))" ./big; mkdir -p d/e; same "$(find . -empty -type d)" ./d/e
      same "$(find . -newermt 2002-06-01 -type f)" ./new; same "$(find . -mindepth 2)" ./d/e
      """)
  }
  check("shell.find.delete", tools: ["find"]) { t in
    try t.sh("mkdir -p a/b/c a/d; touch a/b/c/f a/d/g 'a/h i'; find a -delete; test ! -e a")
  }
  check("shell.rm.tree-of-three-thousand", tools: ["rm", "xargs"]) { t in
    try t.sh(
      """
      mkdir t; cd t; seq -f 'd%g' 30 | xargs mkdir
      for d in d*; do (cd $d; seq 100 | xargs touch); done; cd ..; \
      same $(find t -type f | wc -l) 3000; rm -rf t; test ! -e t
      """)
  }
  check("shell.rm.by-xargs", tools: ["rm", "xargs", "find"]) { t in
    try t.sh(
      "seq 500 | xargs touch; touch 'a b' 'c\nd'; find . -type f -print0 | xargs -0 rm; same \"$(ls -A)\" ''")
  }
  check("shell.chmod.recursive", tools: ["chmod"]) { t in
    try t.sh(
      """
      mkdir -p a/b; touch a/b/f a/g; chmod 600 a/g; chmod -R u=rwX,go= a; same $(stat -c %a a/b) 700
      same $(stat -c %a a/b/f) 600; chmod -R a+X a; \
      same $(stat -c %a a/b) 711; chmod +t,g+s a; same $(stat -c %a a) 3711
      chmod --reference=a/g a/b/f; same $(stat -c %a a/b/f) $(stat -c %a a/g)
      """)
  }
  check("shell.ls.long-listing", tools: ["ls"]) { t in
    try t.sh(
      """
      echo hello > f; chmod 4640 f; touch -d '2001-02-03 04:05:06' f; ln -s f l; mkdir d; mkfifo p
      same "$(ls -ln --time-style=+%s f | \
      cut -d' ' -f1,2,5,6,7)" "-rwSr----- 1 6 $(date -d '2001-02-03 04:05:06' +%s) f"
      same "$(ls -la | wc -l)" 7; same "$(ls -F | tr '\\n' ' ')" 'd/ f l@ p| \
      '; same $(ls -i f | cut -d' ' -f1) $(stat -c %i f)
      """)
  }
  check("shell.touch.date-reference-and-nocreate", tools: ["touch"]) { t in
    try t.sh(
      """
      touch -d '2010-10-10 10:10:10.123456789' a; same "$(stat -c %y a)" '2010-10-10 10:10:10.123456789 +0000'
      touch -r a b; same "$(stat -c %y a)" "$(stat -c %y b)"; touch -c missing; test ! -e missing
      touch -a -d 2001-01-01 a; same "$(stat -c %X a)" 978307200; same "$(stat -c %y a)" "$(stat -c %y b)"
      touch -m -d 1960-01-01 a; same "$(stat -c %Y a)" -315619200
      """)
  }
  check("shell.stat.formats", tools: ["stat"]) { t in
    try t.sh(
      """
      printf 12345 > f; mkdir d; ln -s f l; mkfifo p; same "$(stat -c '%F|%s|%h|%a' f)" 'regular file|5|1|644'
      same "$(stat -c %F d l p | tr '\\n' ,)" 'directory,symbolic link,fifo,'; same "$(stat -L -c %s l)" 5
      same "$(stat -c %N l)" "'l' -> 'f'"; test "$(stat -f -c %l .)" = 255; \
      same "$(stat -c %m .)" "$(stat -c %m d)"
      test "$(stat -c %W f)" -ge 0
      """)
  }
  check("shell.du-and-df", tools: ["du", "df"]) { t in
    try t.sh(
      """
      head -c 100000 /dev/urandom > a; ln a b; truncate -s 10M c; sync a; test $(du -k a | cut -f1) -ge 97
      same $(du -b --apparent-size c | cut -f1) 10485760; \
      test $(du -k c | cut -f1) -lt 100; test $(du -sk . | cut -f1) -lt 300
      df . > /dev/null; df -i . > /dev/null
      """)
  }
  check("shell.sort-to-itself-and-sponges", tools: ["sort"]) { t in
    try t.sh(
      "seq 5000 | sort -R > a; sort -n -o a a; same \"$(head -1 a)\" 1; "
        + "same \"$(tail -1 a)\" 5000; same $(wc -l < a) 5000"
    )
  }
  check("shell.sed-in-place", tools: ["sed"]) { t in
    try t.sh(
      """
      seq 100 > a; chmod 640 a; sed -i 's/^5$/five/' a; same "$(sed -n 5p a)" five; same $(stat -c %a a) 640
      sed -i.bak 1d a; test -f a.bak; same $(wc -l < a) 99; \
      ln -s a l; sed -i --follow-symlinks 1d l; test -L l
      """)
  }
  check("shell.mktemp", tools: ["mktemp"]) { t in
    try t.sh(
      """
      f=$(mktemp -p . x.XXXXXX); same $(stat -c %a $f) 600; \
      d=$(mktemp -d -p . y.XXXXXX); same $(stat -c %a $d) 700
      for i in 1 2 3 4 5 6 7 8 9 10; do mktemp -p $d > /dev/null; done; same $(ls $d | wc -l) 10
      """)
  }
  check("shell.flock-serialises", tools: ["flock"]) { t in
    try t.sh(
      """
      echo 0 > n; for i in 1 2 3 4; do (for j in 1 2 3 4 5; \
      do flock lock sh -c 'echo $(($(cat n) + 1)) > n'; done) & done
      wait; same $(cat n) 20; exec 9> lock; flock -n 9; \
      if flock -n lock true; then exit 1; fi; flock -u 9; flock -n lock true
      """)
  }
  check("shell.redirections", tools: ["cat"]) { t in
    try t.sh(
      """
      echo 1 > a; echo 2 >> a; same "$(cat a | tr -d '\\n')" 12; \
      set -C; if (echo 3 > a) 2> /dev/null; then exit 1; fi; set +C
      : > a; same $(stat -c %s a) 0; cat > b << END
      text
      END
      same "$(cat < b)" text; exec 3<> b; read line <&3; echo more >&3; \
      exec 3>&-; same "$(cat b | tr '\\n' ' ')" 'text more '
      """)
  }
  check("shell.tee-and-process-pipes", tools: ["tee", "cmp"]) { t in
    try t.sh(
      "seq 10000 | tee a b > c; cmp a b; cmp b c; seq 3 | tee -a a > /dev/null; same $(wc -l < a) 10003")
  }
  check("shell.diff-and-patch", tools: ["diff", "patch"]) { t in
    try t.sh(
      """
      mkdir a; seq 100 > a/x; seq 50 > a/y; cp -r a b; sed -i 's/^50$/fifty/' b/x; rm b/y; echo new > b/z
      if diff -ruN a b > p; then exit 1; fi; (cd a; patch -s -p1 < ../p); \
      diff -r a b; (cd a; patch -s -R -p1 < ../p); test -e a/y
      """)
  }
  check("shell.cmp-of-sparse-copies", tools: ["cmp", "cp"]) { t in
    try t.sh(
      """
      truncate -s 8M a; for at in 0 1000000 4194304 8388600; \
      do printf mark | dd of=a bs=1 seek=$at conv=notrunc status=none; done
      cp --sparse=always a b; cat b > c; cmp a b; cmp b c; test $(stat -c %b b) -lt 1000
      """)
  }
  check("shell.readlink-and-realpath", tools: ["readlink", "realpath"]) { t in
    try t.sh(
      """
      mkdir -p a/b; ln -s a/b l; touch a/b/f; \
      same "$(readlink l)" a/b; same "$(realpath l/f)" "$(pwd -P)/a/b/f"
      same "$(readlink -f l/../b)" "$(pwd -P)/a/b"; same "$(cd l; pwd -P)" "$(pwd -P)/a/b"
      """)
  }
  check("shell.tail-follows-a-growing-file", tools: ["tail", "timeout"]) { t in
    try t.sh(
      """
      : > a; timeout 5 tail -n +1 -f --pid=$$ a > out & tail=$!; \
      sleep 0.2; for i in 1 2 3; do echo $i >> a; sleep 0.1; done
      for i in $(seq 30); do test $(wc -l < out) = 3 && \
      break; sleep 0.1; done; kill $tail; same $(wc -l < out) 3
      """)
  }
  check("shell.hard-link-backups", tools: ["cp", "rsync"]) { t in
    try t.sh(
      """
      mkdir a; seq 10 > a/x; seq 20 > a/y; touch -d 2001-01-01 a/x a/y; rsync -a a/ b/; echo z >> a/x
      rsync -a --link-dest=../b a/ c/; same $(stat -c %i b/y) $(stat -c %i c/y); \
      test $(stat -c %i b/x) != $(stat -c %i c/x)
      """)
  }
  check("shell.lsattr-answers-or-refuses-plainly", tools: ["lsattr"]) { t in
    let (_, output) = try t.shell("touch a; lsattr a")
    try t.expect(
      !output.contains("Input/output error"), "flags or a plain refusal, saw \(output.prefix(100)):")
  }
  check("shell.getfattr-setfattr", tools: ["getfattr", "setfattr"]) { t in
    try t.needsUserXattrs()
    try t.sh(
      """
      touch a; setfattr -n user.com.apple.test -v value a; \
      same "$(getfattr --only-values -n user.com.apple.test a)" value
      getfattr -d a > dump; touch b; sed 's/^# file: a/# file: b/' dump | setfattr --restore=-
      same "$(getfattr --only-values -n user.com.apple.test b)" value; \
      setfattr -x user.com.apple.test a; same "$(getfattr -d a)" ''
      """)
  }
}

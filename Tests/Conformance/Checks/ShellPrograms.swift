// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

func shellPrograms(_ check: inout Checks) {
  for mode in ["delete", "truncate", "persist", "wal"] {
    check("shell.sqlite.\(mode)-two-writers", tools: ["sqlite3"]) { t in
      try t.sh(
        """
        same "$(sqlite3 db 'PRAGMA journal_mode=\(mode)')" \(mode)
        sqlite3 db 'CREATE TABLE t(writer, value)'
        for w in 1 2; do (for i in $(seq 15); do
          sqlite3 -cmd '.timeout 20000' db "PRAGMA synchronous=NORMAL; \
        BEGIN IMMEDIATE; INSERT INTO t VALUES($w, $i); COMMIT;"
        done) & eval "p$w=$!"; done; wait $p1; wait $p2
        same "$(sqlite3 db 'SELECT count(*), count(DISTINCT writer || "-" || value) FROM t')" '30|30'
        same "$(sqlite3 db 'PRAGMA integrity_check')" ok
        """)
    }
  }
  check("shell.sqlite.wal-reader-during-a-write", tools: ["sqlite3"]) { t in
    try t.sh(
      """
      sqlite3 db 'PRAGMA journal_mode=wal; CREATE TABLE t(x); INSERT INTO t VALUES(1);' > /dev/null
      same "$(printf 'BEGIN;INSERT INTO t VALUES(2);\\n.shell sqlite3 \
      db \\"SELECT count(*) FROM t\\"\\nCOMMIT;' | sqlite3 db)" 1
      same "$(sqlite3 db 'SELECT count(*) FROM t')" 2; \
      sqlite3 db 'PRAGMA wal_checkpoint(TRUNCATE)' > /dev/null
      same "$(sqlite3 db 'PRAGMA integrity_check')" ok
      """)
  }
  check("shell.sqlite.rollback-and-vacuum-and-mmap", tools: ["sqlite3"]) { t in
    try t.sh(
      """
      sqlite3 db 'PRAGMA mmap_size=10000000; CREATE TABLE t(x); \
      WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c
        WHERE n < 20000) INSERT INTO t SELECT randomblob(50) FROM c; \
      BEGIN; DELETE FROM t; ROLLBACK;' > /dev/null
      same "$(sqlite3 db 'SELECT count(*) FROM t')" 20000; \
      sqlite3 db 'DELETE FROM t WHERE rowid > 100; VACUUM;'
      same "$(sqlite3 db 'PRAGMA integrity_check')" ok; test $(stat -c %s db) -lt 100000
      """)
  }
  check("shell.git.init-commit-branch-merge-gc-fsck-clone", tools: ["git"]) { t in
    try t.sh(
      """
      git init -q -b main r; cd r; seq 100 > a; mkdir d; \
      seq 50 > d/b; ln -s a l; printf '#!/bin/sh\\n' > x; chmod 755 x
      git add .; git commit -qm one; git checkout -qb side; \
      echo side >> d/b; git commit -qam two; git checkout -q main
      sed -i 1d a; git mv x y; git commit -qam three; \
      git merge -q -m merge side; same "$(git status --porcelain)" ''
      git gc -q; git fsck --strict 2>&1 | \
      grep -v '^\\(Checking\\|dangling\\)' && exit 1; cd ..; git clone -q r c
      (cd c; same "$(git log --format=%s | wc -l)" 4; \
      test -x y; test -L l; same "$(git status --porcelain)" '')
      git -C r stash list; git -C r rev-parse HEAD > h; \
      same "$(git -C c rev-parse HEAD)" "$(cat h)"; diff -r -x .git r c
      """)
  }
  check("shell.git.many-files-and-clean-status", tools: ["git"]) { t in
    try t.sh(
      """
      git init -q -b main .; for i in $(seq 300); do echo $i > f$i; done; git add .; git commit -qm all
      same "$(git status --porcelain)" ''; echo x >> f7; \
      same "$(git status --porcelain)" ' M f7'; git checkout -q f7
      rm f9; same "$(git status --porcelain)" ' D f9'; \
      git reset -q --hard; same "$(git status --porcelain)" ''
      git repack -qad; git fsck > /dev/null 2>&1; \
      git worktree add -q ../"$(basename "$PWD")"/w HEAD; test -f w/f300
      """)
  }
  check("shell.cc.compile-and-run", tools: ["cc"]) { t in
    try t.sh(
      """
      printf '#include <stdio.h>\\nint main(void) { puts("hello"); \
      return 0; }\\n' > hello.c; cc -pipe -o hello hello.c
      same "$(./hello)" hello; cc -pipe -c -o hello.o hello.c; cc -o hello hello.o; same "$(./hello)" hello
      """)
  }
  check("shell.cc.shared-library-and-archive", tools: ["cc", "ar"]) { t in
    try t.sh(
      """
      echo 'int seven(void) { return 7; }' > s.c; \
      echo 'int seven(void); int main(void) { return seven(); }' > m.c
      cc -pipe -shared -fPIC -o libs.so s.c; cc -pipe -o m m.c -L. \
      -ls -Wl,-rpath,"$PWD"; if ./m; then exit 1; else same $? 7; fi
      cc -pipe -c s.c; ar rcs liba.a s.o; cc -pipe -o n m.c liba.a; if ./n; then exit 1; else same $? 7; fi
      """)
  }
  check("shell.make.by-timestamps", tools: ["make"]) { t in
    try t.sh(
      """
      printf 'all: c\\nc: a b\\n\\tcat a b > c\\n\\techo ran >> log\\n' > Makefile; echo 1 > a; echo 2 > b
      make -s; make -s; same $(wc -l < log) 1; sleep 0.05; touch b; make -s; same $(wc -l < log) 2; make -q
      touch -d 2001-01-01 a b; make -s; same $(wc -l < log) 2; rm c; make -s; same $(wc -l < log) 3
      """)
  }
  check("shell.make.parallel", tools: ["make"]) { t in
    try t.sh(
      """
      printf 'all: $(shell seq -f o%%g 40)\\no%%:\\n\\techo $@ > $@\\n' > Makefile; \
      make -s -j4; same $(cat o* | sort -u | wc -l) 40
      """)
  }
  check("shell.python.runs-and-caches-bytecode", tools: ["python3"]) { t in
    try t.sh(
      """
      echo 'value = 42' > module.py; same "$(python3 -c 'import module; \
      print(module.value)')" 42; test -d __pycache__
      sleep 0.02; echo 'value = 4343' > module.py; \
      same "$(python3 -c 'import module; print(module.value)')" 4343
      """)
  }
  check("shell.python.files-mmap-and-locks", tools: ["python3"]) { t in
    try t.make(
      "script.py",
      """
      import fcntl, mmap, os, shutil, tempfile
      with open("a", "w+b") as f:
          f.write(b"x" * 10000); f.flush(); fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
          m = mmap.mmap(f.fileno(), 0); m[5000:5004] = b"text"; \
      m.flush(); f.seek(5000); assert f.read(4) == b"text"
      os.makedirs("d/e/f"); shutil.copytree("d", "g"); \
      shutil.copy2("a", "g/a"); assert os.path.samefile("a", "./a")
      assert [e.name for e in os.scandir("g") if e.is_file()] == ["a"]; shutil.rmtree("g")
      with tempfile.TemporaryFile(dir=".") as f: f.write(b"x"); f.seek(0); assert f.read() == b"x"
      with tempfile.NamedTemporaryFile(dir=".") as f: assert os.path.exists(f.name)
      os.replace("a", "b"); os.utime("b", ns=(1, 2)); assert os.stat("b").st_mtime_ns == 2
      print("fine")

      """)
    try t.equal(try t.sh("python3 script.py"), "fine\n", "output")
  }
  check("shell.perl.in-place-edit", tools: ["perl"]) { t in
    try t.sh(
      "seq 10 > a; perl -pi.bak -e 's/^3$/three/' a; "
        + "same \"$(sed -n 3p a)\" three; same \"$(sed -n 3p a.bak)\" 3"
    )
  }
  check("shell.scripts-run-from-here", tools: ["sh"]) { t in
    try t.sh(
      """
      mkdir bin; printf '#!/bin/sh\\necho ran $1\\n' > bin/tool; \
      chmod 755 bin/tool; PATH="$PWD/bin:$PATH"; same "$(tool x)" 'ran x'
      chmod 644 bin/tool; if bin/tool 2> /dev/null; then exit 1; fi; same "$(sh bin/tool y)" 'ran y'
      """)
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Backups that are made while an app writes.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct WritingAppsTests {
  /// Moves amounts between accounts in two databases, and replaces files whose contents say what they are.
  ///
  /// What each account has is written twice, at both ends of the database, which is larger than what is read
  /// of it at a time.
  private static let app = """
    import hashlib, os, random, sqlite3, sys, threading
    def work(name, mode):
        db = sqlite3.connect(name, timeout=60, isolation_level=None)
        db.execute(f'PRAGMA journal_mode={mode}')
        db.execute('PRAGMA synchronous=OFF'); db.execute('PRAGMA wal_autocheckpoint=200')
        db.execute('CREATE TABLE IF NOT EXISTS a (id INTEGER PRIMARY KEY, n INTEGER, filler BLOB)')
        if db.execute('SELECT count(*) FROM a').fetchone()[0] == 0:
            db.execute('BEGIN')
            for i in range(4000): db.execute('INSERT INTO a VALUES (?, 100, ?)', (i, os.urandom(1500)))
            db.execute('COMMIT')
        open(name + '.made', 'w').close()
        while not os.path.exists('stop'):
            db.execute('BEGIN IMMEDIATE')
            for _ in range(20):
                one, two, n = random.randrange(4000), random.randrange(4000), random.randrange(50)
                db.execute('UPDATE a SET n = n - ?, filler = ? WHERE id = ?', (n, os.urandom(1500), one))
                db.execute('UPDATE a SET n = n + ? WHERE id = ?', (n, two))
            db.execute('COMMIT')
    def files():
        count = 0
        while not os.path.exists('stop'):
            count += 1
            data = os.urandom(random.randrange(1, 200000))
            name = f'file {random.randrange(40)}'
            new = f'new {count}'
            with open(new, 'wb') as file: file.write(hashlib.sha256(data).digest() + data)
            os.rename(new, name)
            open('files.made', 'w').close()
    threads = [threading.Thread(target=work, args=a) for a in [('rollback.db', 'DELETE'), ('log.db', 'WAL')]]
    threads.append(threading.Thread(target=files))
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    """

  /// Prints what is wrong with what the app has written, if anything is.
  private static let judge = """
    import hashlib, os, sqlite3, sys
    count = 0
    for name in os.listdir(sys.argv[1]):
        path = os.path.join(sys.argv[1], name)
        if name.endswith('.db'):
            db = sqlite3.connect(path)
            said = db.execute('PRAGMA integrity_check').fetchall()
            if said != [('ok',)]: print(name, said[:3])
            found = db.execute('SELECT count(*), sum(n) FROM a').fetchone()
            if found != (4000, 400000): print(name, found)
            count += 1
        elif name.startswith('file '):
            data = open(path, 'rb').read()
            if hashlib.sha256(data[32:]).digest() != data[:32]: print(name, 'never existed')
            count += 1
    print('judged', count)
    """

  @Test(arguments: [false, true])
  func databasesAndFilesAreOfOneMomentEach(rootless: Bool) throws {
    guard try Program.run(["python3", "-c", "import sqlite3"]).status == 0 else {
      print("NOT TESTED: python3 has no sqlite3")
      return
    }
    let fixture = try BackupFixture(rootless: rootless)
    let app = try fixture.run.mounted.temporary.write(Self.app, to: "backup/app.py")
    let judge = try fixture.run.mounted.temporary.write(Self.judge, to: "backup/judge.py")
    for path in [app, judge] { chmod(path, 0o644) }
    let (other, bundles) = try fixture.anotherStore()
    let made = try fixture.succeed(
      """
      init
      run python3 -c "$(echo 'import os; os.chdir(os.environ["HOME"] + "/Documents")'; cat '\(app)')" &
      for name in rollback.db.made log.db.made files.made; do
        tries=0
        until [ -e "$DATA/Documents/$name" ]; do
          tries=$((tries + 1)); [ $tries -lt 600 ] || { echo "the app does not work"; exit 1; }; sleep 0.1
        done
      done
      for round in 1 2; do
        backup now --store "$POINT"
        bring "$SCRATCH/$round"
        echo "databases: $(find "$SCRATCH/$round" -path '*/databases/*/Documents/*.db' | wc -l)"
        rm -r "$SCRATCH/$round"
      done
      touch "$DATA/Documents/stop"; wait
      backup restore --to '\(other.point)' --bundles '\(bundles)' --replace --quiet
      python3 '\(judge)' '\(other.point)'/"${DATA#"$POINT"/}"/Documents
      """)
    #expect(made.components(separatedBy: "databases: 2\n").count == 3, "\(made)")
    let lines = made.split(separator: "\n").suffix(2)
    #expect(lines.first == "databases: 2", "\(made)")
    // The databases, and some of the files.
    let judged = lines.last?.split(separator: " ")
    #expect(judged?.first == "judged" && Int(judged?.last ?? "").map { $0 >= 3 } == true, "\(made)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.scratch).isEmpty)
  }

  /// What an app does so that its database can't be held, or something else than a database is.
  private static let hostileApp = """
    import os, sqlite3, time
    db = sqlite3.connect('held.db', isolation_level=None)
    db.execute('CREATE TABLE a (b)'); db.execute('BEGIN EXCLUSIVE')
    for name in ['wal', 'link', 'directory', 'fifo']:
        copy = sqlite3.connect(name + '.db', isolation_level=None)
        copy.execute('CREATE TABLE a (b)'); copy.close()
    os.mkfifo('wal.db-journal'); os.symlink('/etc/hostname', 'link.db-journal')
    os.makedirs('directory.db-journal/below'); os.mkfifo('fifo-shm')
    with open('not.db', 'wb') as file: file.write(b'SQLite format 3\\0' + b'x' * 2032)
    with open('endless.db', 'wb') as file:
        file.write(b'SQLite format 3\\0' + b'\\2' * 496); file.truncate(1 << 28)
    open('ready', 'w').close()
    while not os.path.exists('stop'): time.sleep(0.05)
    """

  @Test func databasesThatCannotBeHeldHoldNothingUp() throws {
    let fixture = try BackupFixture()
    let app = try fixture.run.mounted.temporary.write(Self.hostileApp, to: "backup/app.py")
    chmod(app, 0o644)
    let made = try fixture.succeed(
      """
      init
      run python3 -c "$(echo 'import os; os.chdir(os.environ["HOME"] + "/Documents")'; cat '\(app)')" &
      tries=0
      until [ -e "$DATA/Documents/ready" ]; do
        tries=$((tries + 1)); [ $tries -lt 300 ] || { echo "the app does not work"; exit 1; }; sleep 0.1
      done
      echo secret >"$DATA/Documents/unread"; chmod 0 "$DATA/Documents/unread"
      backup now --store "$POINT" 2>&1 && exit 9 || [ $? = 1 ]
      chmod 600 "$DATA/Documents/unread"
      backup now --store "$POINT" 2>&1 && exit 9 || [ $? = 1 ]
      touch "$DATA/Documents/stop"; wait
      bring "$SCRATCH/all"; cd "$SCRATCH/all"; find . -path '*/databases/*' ! -type d -printf '%f\\n' | sort
      find . -path '*/tree/*' -name held.db; rm -rf "$SCRATCH/all"
      """)
    #expect(
      made.includes("unread: Permission denied") && made.includes("1 file could not be read"), "\(made)")
    #expect(
      made.includes("Documents/held.db: this database is in use") && made.includes("/held.db\n"), "\(made)")
    let copies = made.split(separator: "\n").suffix(7).dropLast()
    #expect(
      copies == ["directory.db", "endless.db", "fifo.db", "link.db", "not.db", "wal.db"], "\(made)")
  }

  /// A database in a directory that its app has closed, and one that is another file after each copy.
  private static let stubbornApp = """
    import os, sqlite3, threading, time
    os.mkdir('closed')
    db = sqlite3.connect('closed/db', isolation_level=None); db.execute('CREATE TABLE a (b)')
    os.chmod('closed', 0o555)
    sqlite3.connect('new.db', isolation_level=None).execute('CREATE TABLE a (b)')
    data = open('new.db', 'rb').read()
    def swap():
        while not os.path.exists('stop'):
            open('next', 'wb').write(data); os.rename('next', 'new.db')
    threading.Thread(target=swap).start()
    open('ready', 'w').close()
    while not os.path.exists('stop'): time.sleep(0.05)
    """

  @Test func noAppKeepsItsUserFromWhatIsBackedUp() throws {
    let fixture = try BackupFixture()
    let app = try fixture.run.mounted.temporary.write(Self.stubbornApp, to: "backup/app.py")
    chmod(app, 0o644)
    let made = try fixture.succeed(
      """
      init; home="$POINT/Users/$(id -un)"; echo 1 >"$home/Documents/letter"
      run python3 -c "$(echo 'import os; os.chdir(os.environ["HOME"] + "/Documents")'; cat '\(app)')" &
      tries=0
      until [ -e "$DATA/Documents/ready" ]; do
        tries=$((tries + 1)); [ $tries -lt 300 ] || { echo "the app does not work"; exit 1; }; sleep 0.1
      done
      backup now --store "$POINT" 2>&1 || [ $? = 1 ]
      touch "$DATA/Documents/stop"; wait
      rm "$home/Documents/letter"
      backup restore --to "$POINT" --replace --quiet; cat "$home/Documents/letter"
      stat -c %a "$DATA/Documents/closed"; sqlite3 "$DATA/Documents/closed/db" .schema
      chmod 700 "$DATA/Documents/closed"
      """)
    #expect(made.hasSuffix("1\n555\nCREATE TABLE a (b);\n"), "\(made)")
  }

  /// More than a manifest could hold.
  @Test func entitlementsOfOneAreNotEverybodysManifest() throws {
    let fixture = try BackupFixture()
    for name in ["One", "Two"] {
      let text = String(repeating: "<string>\(String(repeating: "a", count: 100))</string>", count: 1500)
      try fixture.run.install(
        name, entitlements: "<key>org.example.long</key><array>\(text)</array>",
        options: ["--identifier", "org.example.\(name.lowercased())"])
    }
    let made = try fixture.succeed(
      """
      init; echo 1 >"$POINT/Users/$(id -un)/Documents/letter"
      backup now --store "$POINT" >/dev/null
      rm "$POINT/Users/$(id -un)/Documents/letter"; bring "$SCRATCH/all"
      size=$(find "$SCRATCH/all" -name manifest.json -printf %s); [ "$size" -lt 400000 ] && echo small
      rm -r "$SCRATCH/all"; backup restore --to "$POINT" --replace --quiet
      cat "$POINT/Users/$(id -un)/Documents/letter"
      """)
    #expect(made.hasSuffix("small\n1\n"), "\(made)")
  }
}

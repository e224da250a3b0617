// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Mounts of stores that ignore case, and what programs see there.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct SpellingMountTests {
  private static let modes = [nil, "nopassthrough", "nohandles,nopassthrough"]

  private func mounted(_ options: String? = nil, owner: Account? = nil) throws -> MountedStore {
    let mounted = try MountedStore(owner: owner, initOptions: ["--case-insensitive"])
    try mounted.mount(options: options)
    return mounted
  }

  /// Runs a script in an open directory of the mount.
  private func run(_ mounted: MountedStore, _ script: String) throws -> ProgramResult {
    let become = mounted.owner.map {
      ["setpriv", "--reuid=\($0.uid)", "--regid=\($0.gid)", "--clear-groups"]
    }
    return try Program.run(
      (become ?? []) + [
        "timeout", "200", "sh", "-c", "cd '\(mounted.path("Users/Shared"))' || exit\n" + script,
      ],
      environment: ["HOME": "/nonexistent", "LC_ALL": "C.UTF-8"])
  }

  private func expect(_ mounted: MountedStore, _ script: String, _ output: String) throws {
    let result = try run(mounted, script)
    #expect(result.output == output, "\(script): \(result.errors)")
  }

  /// A home is removed by its own name: another spelling may be another account's.
  @Test func homesHaveOneSpelling() throws {
    let mounted = try mounted()
    let account = try TemporaryAccount()
    let name = account.account.name
    func user(_ words: String...) throws -> ProgramResult {
      try mounted.run(["user"] + words + ["--store", mounted.store])
    }
    #expect(try user("add", name).status == 0)
    try "kept".write(toFile: mounted.backing("Users/\(name)/letter"), atomically: false, encoding: .utf8)
    let refused = try user("remove", name.uppercased(), "--delete-home")
    #expect(refused.ending == .failed && refused.errors.contains("there is no home"), "\(refused)")
    #expect(FD.text(of: mounted.backing("Users/\(name)/letter"), limit: 16) == "kept")
    // Also its ACL is as it was.
    #expect(try Program.run(["rmdir", mounted.path("Users/\(name)/Documents")]).status == 1)
    #expect(try user("remove", name, "--delete-home").status == 0)
    #expect(!FileManager.default.fileExists(atPath: mounted.backing("Users/\(name)")))
  }

  private static let nobody = Account(name: "nobody", uid: 65534, gid: 65534, home: "/")

  /// `make spellings` does a hundred thousand.
  @Test(arguments: modes + ["rootless"]) func namesAreAsInTheModel(options: String?) throws {
    let isRootless = options == "rootless"
    let mounted = try mounted(isRootless ? nil : options, owner: isRootless ? Self.nobody : nil)
    let script = Checkout.path("Tests/Spellings/spellings.py")
    let copy = mounted.temporary.appending("spellings.py")
    try Data(contentsOf: URL(fileURLWithPath: script)).write(to: URL(fileURLWithPath: copy))
    let count = ProcessInfo.processInfo.environment["INSULA_SPELLINGS"] ?? "2000"
    let result = try run(mounted, "chmod a+r \(copy); mkdir names && python3 \(copy) names --names \(count)")
    #expect(result.status == 0, "\(result.output)\(result.errors)")
    // Where root's daemon serves, it can tell what a caller is doing.
    if !isRootless { #expect(result.output.contains("respelled by rename: yes"), "\(result.output)") }
  }

  @Test(arguments: modes) func programsChangeTheSpelling(options: String?) throws {
    let mounted = try mounted(options)
    try expect(mounted, "echo 1 > foo; mv foo FOO; ls; cat foo", "FOO\n1\n")
    try expect(mounted, "mv FOO bar; ls; mv BAR foo; ls", "bar\nfoo\n")
    try expect(mounted, "mkdir dir; touch dir/x; mv dir DIR; ls; mv dir/x Dir/X; ls dir", "DIR\nfoo\nX\n")
    try expect(mounted, "stat foo FOO > /dev/null; mv foo Foo; ls", "DIR\nFoo\n")
    let python = "python3 -c 'import os; os.lstat(\"FOO\"); os.rename(\"Foo\", \"fOO\")'"
    try expect(mounted, "\(python); ls; rm Foo; ls", "DIR\nfOO\nDIR\n")
    try expect(
      mounted, "touch caf\u{E9}; mv caf\u{E9} cafe\u{301}; rmdir dir 2>&1; rm dir/x; rmdir dir; ls",
      "rmdir: failed to remove 'dir': Directory not empty\ncafe\u{301}\n")
    // In a directory that is called by several spellings, each time by another one.
    try expect(
      mounted, "rm *; mkdir a; touch a/n; for i in 1 2 3; do mv A/n a/N; ls a; mv a/N A/n; ls A; done",
      String(repeating: "N\nn\n", count: 3))
  }

  @Test func gitRenames() throws {
    let mounted = try mounted()
    let result = try run(
      mounted,
      """
      export HOME=$PWD GIT_CONFIG_NOSYSTEM=1; git init -q repository && cd repository
      git config user.email a@b; git config user.name x; git config core.ignorecase
      echo x > readme; mkdir Sub; echo y > sub/File; git add . && git commit -qm x && git mv readme README
      git status --short; git ls-files; ls
      """)
    #expect(result.output == "true\nR  readme -> README\nREADME\nSub/File\nREADME\nSub\n", "\(result.errors)")
  }

  /// Nothing that a kernel knew by the stored spelling is left when it is removed by another one.
  @Test(arguments: modes) func whatIsRemovedIsGone(options: String?) throws {
    let mounted = try mounted(options)
    for use in ["exec 3< foo", "exec 3<> foo", "true", "sleep 60 < foo & trap 'kill $!' EXIT"] {
      try expect(
        mounted,
        "echo 1 > foo; cat foo; \(use); stat -c %s FOO; rm FOO; cat foo; ls; echo 2 > FOO; cat foo; rm foo",
        "1\n2\n2\n")
      try expect(
        mounted,
        """
        echo 1 > foo; cat foo; \(use); mv FOO bar; cat foo; cat bar; echo 2 > x; mv x BAR; ls; cat bar; rm BAR
        """,
        "1\n1\nBAR\n2\n")
    }
    let held = """
      import os
      open("foo", "w").close(); os.stat("foo")
      path = os.open("foo", os.O_PATH)
      os.unlink("FOO")
      for name in ("foo", "FOO"):
          try: os.stat(name); print("there")
          except FileNotFoundError: print("gone")
      print(os.fstat(path).st_nlink)
      """
    try expect(mounted, "python3 - <<'END'\n\(held)\nEND", "gone\ngone\n0\n")
  }

  /// A kernel that knows one spelling as missing sees that another one is made, by whoever makes it.
  @Test(arguments: modes) func whatIsMadeIsThere(options: String?) throws {
    let mounted = try mounted(options)
    for make in ["touch foo", "mkdir foo", "ln -s x foo", "touch y; mv y foo", "touch y; ln y foo"] {
      try expect(
        mounted,
        """
        for name in FOO Foo foo FOO; do stat $name 2>/dev/null; done; \(make)
        for name in FOO Foo foo; do [ -e $name ] || [ -L $name ] || echo "$name is missing"; done; ls -d f*
        rm -rf Foo y; ls FOO foo 2>&1 | wc -l
        """, "foo\n2\n")
    }
  }

  @Test func whatIsMadeIsThereAfterTheWorkerHasDied() throws {
    let mounted = try mounted()
    try expect(mounted, "stat FOO 2>/dev/null; stat FOO 2>&1 | grep -c directory", "1\n")
    kill(pid_t(try mounted.count("pid")), SIGKILL)
    try expect(mounted, "touch foo; ls FOO", "FOO\n")
  }

  @Test func directoriesAreWalkedInEverySpelling() throws {
    let mounted = try mounted()
    try expect(
      mounted,
      """
      mkdir -p One/Two; cd ONE/two; touch ../../oNE/TWO/x; ls
      cd "$(pwd -P)" && ls ../tWO; (cd ../../one && ls)
      touch ../../One/two/y; ls -i ../../*/*/ | wc -l; mv ../../one ../../other; ls "$(/bin/pwd)"
      """, "x\nx\nTwo\n2\nx\ny\n")
  }

  @Test func whatIsReadOnlyIsFound() throws {
    let mounted = try mounted()
    try expect(mounted, "echo 1 > Foo", "")
    #expect(try mounted.unmount().status == 0)
    try mounted.mount(options: "ro")
    try expect(
      mounted, "cat FOO; touch foo 2>&1; mkdir Bar 2>&1 | grep -o 'Read-only.*'",
      "1\ntouch: cannot touch 'foo': Read-only file system\nRead-only file system\n")
  }

  /// A worker that takes over knows of no spelling, and finds them again.
  @Test func spellingsOutliveTheWorker() throws {
    let mounted = try mounted()
    try expect(mounted, "echo 1 > foo; cat FOO", "1\n")
    let before = try mounted.count("restarts")
    let pid = try mounted.count("pid")
    kill(pid_t(pid), SIGKILL)
    try expect(
      mounted, "cat Foo; rm FOO; cat foo 2>&1; mkdir FOO; rmdir foo; ls",
      "1\ncat: foo: No such file or directory\n")
    #expect(try mounted.count("restarts") == before + 1)
  }

  /// Who asks first has it read, in their turn, and all who ask meanwhile wait for that.
  @Test func largeDirectoriesAreReadInTurn() throws {
    let mounted = try MountedStore(owner: nil, initOptions: ["--case-insensitive"])
    let directory = mounted.backing("Users/Shared/large")
    let filled = try Program.run([
      "python3", "-c",
      """
      import os
      os.makedirs("\(directory)"); os.chmod("\(directory)", 0o777); os.chdir("\(directory)")
      for i in range(30000): os.mknod(f"File number {i:05} of many")
      print(os.stat(".").st_size >= 256 << 10)
      """,
    ])
    try #require(filled.output == "True\n", "\(filled)")
    try mounted.mount()
    try expect(
      mounted,
      """
      cd large
      for i in 1 2 3 4 5 6 7 8; do
        (for n in 1 2 3 4 5; do stat "FILE NUMBER 0${i}00$n OF MANY"; touch new$i; touch NEW$i; done
         mkdir NEW$i) &
      done >../out 2>../errors
      wait; grep -c 'File: ' ../out; grep -c exists ../errors; ls | wc -l
      """, "40\n8\n30008\n")
  }

  @Test(arguments: [false, true]) func appsHaveOneOfEach(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless, initOptions: ["--case-insensitive"])
    let home = fixture.mounted.path("Users/\(fixture.user.name)")
    // Their Inbox is one in every spelling, and they have no other.
    let made = try fixture.inside(
      """
      mkdir Documents/inbox documents/INBOX; mkdir LIBRARY/x && ls Library | grep x
      touch data .COM.APPLE.y; echo mine > Documents/Mine; cat DOCUMENTS/mine
      """)
    #expect(made.output == "x\nmine\n", "\(made.errors)")
    #expect(made.errors.components(separatedBy: "not permitted").count == 5, "\(made.errors)")
    let delivered = try fixture.shell(
      """
      echo 1 > '\(home)/letter'; echo 2 > '\(home)/Public/LETTER'
      insula deliver $APP '\(home)/letter'; insula deliver $APP '\(home)/PUBLIC/LETTER'
      run sh -c 'ls documents/INBOX; echo x > Documents/inbox/LETTER || cat documents/inbox/LETTER'
      """)
    #expect(delivered.output.hasSuffix("LETTER-2\nletter\n1\n"), "\(delivered)")
  }

  /// A grant is of what it is about, whatever that is called.
  @Test func grantsAreGivenAndTakenInEverySpelling() throws {
    let fixture = try RunFixture(initOptions: ["--case-insensitive"])
    let home = fixture.mounted.path("Users/\(fixture.user.name)")
    let result = try fixture.shell(
      """
      cd '\(home)'; mkdir DOCUMENTS/Work; echo dear > documents/work/Letter; echo other > Documents/Work/Other
      insula grant $APP documents/WORK/LETTER --read-write | cat
      run sh -c "cat '\(home)/Documents/Work/letter' '\(home)/documents/WORK/Letter'"
      run sh -c "cat '\(home)/DOCUMENTS/work/OTHER'"
      insula grant $APP Documents/Work/Letter > /dev/null; insula grants --json | grep -c '"path"'
      mv Documents/Work/Letter documents/work/LETTER; ls Documents/Work
      run sh -c "cat '\(home)/documents/WORK/Letter'"
      insula revoke $APP documents/work/lETTER > /dev/null; insula grants
      run sh -c "cat '\(home)/Documents/Work/Letter'"
      """)
    let lines = result.output.split(separator: "\n").map(String.init)
    #expect(
      lines.dropFirst() == ["dear", "dear", "1", "LETTER", "Other", "dear", "There are no grants."],
      "\(result)")
    #expect(lines.first?.contains("/Work/Letter") == true, "\(result.output)")
  }
}

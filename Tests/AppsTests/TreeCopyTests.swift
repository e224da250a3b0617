// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Store
internal import TestSupport
internal import Testing

@Suite struct TreeCopyTests {
  private let made: TestStore
  private let store: Store
  private let source: String

  init() throws {
    made = try TestStore()
    store = try made.open()
    source = try made.temporary.makeDirectory("Editor.app")
  }

  private func stage(_ path: String? = nil, _ copy: TreeCopy? = nil) throws -> StagedTree {
    let directory = try TemporaryDirectory.open(path ?? source)
    return try StagedTree(
      directory.fd, in: store, for: "Applications",
      copy ?? TreeCopy(uid: ProcessID.user, gid: ProcessID.group))
  }

  private func failure(_ copy: TreeCopy? = nil) -> TreeCopyFailure? {
    do {
      _ = try stage(nil, copy)
      return nil
    } catch {
      return error as? TreeCopyFailure
    }
  }

  /// Copies the source to where apps are.
  private func install(_ copy: TreeCopy? = nil) throws -> String {
    let staged = try stage(nil, copy)
    let applications = try TemporaryDirectory.open(made.path + "/tree/Applications")
    try staged.place(as: "Editor.app", in: applications.fd)
    return made.path + "/tree/Applications/Editor.app"
  }

  private func status(_ path: String) throws -> FileStatus {
    var status = stat()
    guard lstat(path, &status) == 0 else { throw Errno.last }
    return FileStatus(status)
  }

  private func staged() throws -> [String] { try made.temporary.names(in: "store/state/staging") }

  private func shell(_ script: String) throws {
    let result = try Program.run(["sh", "-ec", script], in: source)
    guard result.status == 0 else { throw MountedStore.Failure(words: result.errors) }
  }

  @Test func contentsComeOverAsTheyAre() throws {
    try shell(
      """
      mkdir -p Contents/MacOS Contents/Resources/en.lproj Contents/empty
      printf hello > Contents/MacOS/Editor; chmod 755 Contents/MacOS/Editor
      : > Contents/Resources/nothing
      head -c 65537 /dev/urandom > Contents/Resources/medium
      head -c 40000000 /dev/urandom > Contents/Resources/large
      ln -s ../MacOS/Editor Contents/Resources/link
      ln -s /nowhere/at/all Contents/Resources/away
      printf x > "Contents/Resources/$(printf 'caf\\303\\251 \\n\\377')"
      """)
    let copy = try install()
    #expect(try Program.run(["diff", "-r", "--no-dereference", source, copy]).status == 0)
    #expect(try staged().isEmpty)
  }

  @Test func whatIsNotSealedIsMadeUniform() throws {
    try shell(
      """
      mkdir -m 700 d; mkdir -m 1777 e; printf x > plain; chmod 600 plain; printf x > tool; chmod 4711 tool
      printf x > odd; chmod 0455 odd; ln plain second; ln -s plain link
      touch -d '2001-02-03 04:05:06.789012345' plain d; touch -h -d 2001-02-03 link
      """)
    let copy = try install(TreeCopy(uid: ProcessID.user, gid: ProcessID.group))
    for (name, mode) in [
      ("", 0o755), ("/d", 0o755), ("/e", 0o755), ("/plain", 0o644), ("/tool", 0o755), ("/odd", 0o644),
    ] as [(String, FileMode)] {
      #expect(try status(copy + name).permissions == mode, "\(name)")
    }
    // One file under two names became two files.
    let plain = try status(copy + "/plain")
    let second = try status(copy + "/second")
    #expect(plain.st_nlink == 1 && plain.st_ino != second.st_ino)
    for name in ["/plain", "/d", "/link"] {
      let (before, after) = (try status(source + name).st_mtim, try status(copy + name).st_mtim)
      #expect(before.tv_sec == after.tv_sec && before.tv_nsec == after.tv_nsec, "\(name)")
    }
  }

  @Test(.enabled(if: Program.isRoot, "giving files away needs root"))
  func allOfItIsItsNewOwners() throws {
    try shell("mkdir d; printf x > d/f; ln -s f d/l; chmod 6755 d/f")
    let copy = try install(TreeCopy(uid: 65534, gid: 65533))
    for name in ["", "/d", "/d/f", "/d/l"] {
      let status = try status(copy + name)
      #expect(status.st_uid == 65534 && status.st_gid == 65533, "\(name)")
    }
    #expect(try status(copy + "/d/f").permissions == 0o755)
  }

  @Test func attributesOfUsersComeAlongAndOursDoNot() throws {
    try shell("mkdir d; printf x > f")
    for name in ["", "/d", "/f"] {
      for attribute in [
        "user.x", "user.com.apple.quarantine", "user.insula.acl", "user.com.apple.system.Security",
      ] {
        #expect(setxattr(source + name, attribute, "value", 5, 0) == 0)
      }
      if Program.isRoot { #expect(setxattr(source + name, "trusted.insula.flags", "abcd", 4, 0) == 0) }
    }
    let copy = try install()
    for name in ["", "/d", "/f"] {
      let listed = try Program.run(["getfattr", "-m", "-", "--absolute-names", "-d", copy + name]).output
      let names = Set(listed.split(separator: "\n").dropFirst())
      #expect(names == ["user.com.apple.quarantine=\"value\"", "user.x=\"value\""], "\(name)")
    }
  }

  @Test func holesStayHoles() throws {
    try shell(
      """
      truncate -s 1G all-hole
      truncate -s 1G middle; printf x | dd of=middle bs=1 seek=500000000 conv=notrunc status=none
      printf x > begins; truncate -s 300M begins
      """)
    let copy = try install()
    for name in ["all-hole", "middle", "begins"] {
      let (before, after) = (try status("\(source)/\(name)"), try status("\(copy)/\(name)"))
      #expect(after.st_size == before.st_size && after.st_blocks <= before.st_blocks + 16, "\(name)")
    }
    #expect(try Program.run(["cmp", source + "/middle", copy + "/middle"]).status == 0)
  }

  @Test(.enabled(if: Program.isRoot, "mounting needs root"))
  func sizesThatNoNumberHoldsAreCounted() throws {
    let memory = try made.temporary.makeDirectory("memory")
    try #require(mount("tmpfs", memory, "tmpfs", 0, nil) == 0)
    defer { umount2(memory, Int32(MNT_DETACH)) }
    try shell("mkdir \(memory)/b; truncate -s 9223372036854775807 \(memory)/b/one \(memory)/b/two")
    let source = try TemporaryDirectory.open(memory + "/b")
    #expect(try TreeSize.measured(source.fd).bytes == .max)
    try Store.create(at: memory + "/store", TestStore.description)
    let store = try Store(opening: memory + "/store", .exclusive)
    let staged = try StagedTree(source.fd, in: store, for: "Applications", TreeCopy(uid: 0, gid: 0))
    #expect(staged.count.bytes == .max && staged.count.files == 2)
  }

  @Test(arguments: [("mkfifo d/x", "fifo"), ("mknod d/x c 1 3", "device"), ("mknod d/x b 7 0", "device")])
  func specialFilesAreRefusedByName(make: String, kind: String) throws {
    guard Program.isRoot || kind == "fifo" else { return }
    try shell("mkdir d; " + make)
    #expect(failure() == TreeCopyFailure(path: "d/x", reason: .specialFile(kind)))
    #expect(try staged().isEmpty)
  }

  @Test(.enabled(if: Program.isRoot, "mounting needs root"))
  func otherFilesystemIsNotEntered() throws {
    try shell("mkdir d")
    try #require(mount("tmpfs", source + "/d", "tmpfs", 0, nil) == 0)
    #expect(failure() == TreeCopyFailure(path: "d", reason: .otherFilesystem))
    #expect(umount(source + "/d") == 0)
    try shell("printf x > f; printf y > other")
    try #require(mount(source + "/other", source + "/f", nil, UInt(MS_BIND), nil) == 0)
    // A file of the same filesystem: it is copied like any other.
    #expect(failure() == nil)
    #expect(umount(source + "/f") == 0)
  }

  @Test func boundsAreKept() throws {
    try shell("mkdir -p a/b/c; touch 1 2 3")
    var limits = TreeCopy.Limits()
    limits.depth = 2
    let shallow = TreeCopy(uid: ProcessID.user, gid: ProcessID.group, limits: limits)
    #expect(failure(shallow) == TreeCopyFailure(path: "a/b/c", reason: .tooDeep(2)))
    limits = TreeCopy.Limits()
    limits.entries = 5
    let few = TreeCopy(uid: ProcessID.user, gid: ProcessID.group, limits: limits)
    #expect(failure(few)?.reason == .tooMany(5))
    limits.entries = 7
    #expect(failure(TreeCopy(uid: ProcessID.user, gid: ProcessID.group, limits: limits)) == nil)
  }

  @Test func lengthsAreBoundedTogether() throws {
    try shell("mkdir d; printf 12345 > d/one; truncate -s 1G two")
    var limits = TreeCopy.Limits()
    let source = try TemporaryDirectory.open(self.source)
    limits.bytes = try TreeSize.measured(source.fd).bytes
    #expect(limits.bytes == 1 << 30 + 5)
    let plan = TreeCopy(uid: ProcessID.user, gid: ProcessID.group, limits: limits)
    #expect(failure(plan) == nil)
    // One of them has grown since all were measured.
    try shell("printf 6 >> d/one")
    #expect(failure(plan)?.reason == .changed)
    #expect(try staged().isEmpty)
  }

  @Test func largeDirectoriesAreListedInParts() throws {
    try shell("mkdir -p a/b; for d in . a a/b; do (cd $d; seq 3000 | sed s/^/file/ | xargs touch); done")
    try shell("seq 1500 | sed s/^/dir/ | xargs mkdir; touch dir7/file")
    let directory = try TemporaryDirectory.open(source)
    #expect(try TreeSize.measured(directory.fd).entries == 9000 + 1 + 1502 + 1)
    let copy = try install()
    #expect(try Program.run(["diff", "-r", source, copy]).status == 0)
    #expect(try Program.run(["sh", "-c", "find . | wc -l"], in: copy).output == "10504\n")
    // Each part is small, and together they are the directory.
    var (names, parts, isEnd) = ([[UInt8]](), 0, false)
    while !isEnd {
      let part = try directory.fd.nextEntries()
      #expect(part.entries.count < 1600)
      names += part.entries.map(\.name)
      isEnd = part.isEnd
      parts += 1
    }
    #expect(names.count == 4501 && Set(names).count == 4501 && parts > 2)
  }

  @Test func depthIsBoundedByDefault() throws {
    // Longer than any path may be.
    let raw = Glibc.open(source, O_RDONLY | O_DIRECTORY)
    var directory = OwnedFD(owning: raw)
    for _ in 0..<200 {
      try String(repeating: "d", count: 100).withName { (name) throws(Errno) in
        try directory.fd.makeDirectory(name, mode: 0o755)
        directory = try directory.fd.openDirectory(name)
      }
    }
    #expect(failure()?.reason == .tooDeep(100))
    #expect(try staged().isEmpty)
  }

  @Test func linkInThePlaceOfTheSourceIsACopyOfNothing() throws {
    try shell("mkdir outside; printf secret > outside/file; ln -s outside d")
    let copy = try install()
    #expect(try status(copy + "/d").isSymlink)
  }

  @Test func progressGrowsToTheWhole() throws {
    try shell("mkdir d; head -c 50000000 /dev/zero > large; printf abc > d/small; ln -s x l")
    nonisolated(unsafe) var seen: [TreeCopy.Count] = []
    let staged = try stage(
      nil, TreeCopy(uid: ProcessID.user, gid: ProcessID.group) { seen.append($0) })
    #expect(staged.count.bytes == 50_000_003 && staged.count.files == 2)
    #expect(staged.count.directories == 2 && staged.count.links == 1)
    #expect(seen.last == staged.count || seen.last?.bytes == staged.count.bytes)
    #expect(zip(seen, seen.dropFirst()).allSatisfy { $0.bytes <= $1.bytes })
  }

  @Test func whatIsNotPlacedIsNotKept() throws {
    try shell("printf x > f")
    do {
      let staged = try stage()
      #expect(try self.staged().count == 1)
      #expect(staged.count.files == 1)
    }
    #expect(try staged().isEmpty)
  }

  @Test func placeThatIsTakenStaysAsItIs() throws {
    try shell("printf x > f")
    let applications = try TemporaryDirectory.open(made.path + "/tree/Applications")
    try made.temporary.makeDirectory("store/tree/Applications/Editor.app")
    let staged = try stage()
    #expect(throws: Errno.EEXIST) { try staged.place(as: "Editor.app", in: applications.fd) }
    for name in ["", "a/b", ".."] {
      #expect(throws: Errno.EINVAL, "\(name)") { try staged.place(as: name, in: applications.fd) }
    }
    #expect(try made.temporary.names(in: "store/tree/Applications/Editor.app").isEmpty)
    #expect(throws: Errno.ENOENT) { try staged.replace("Viewer.app", in: applications.fd) }
    try staged.replace("Editor.app", in: applications.fd)
    #expect(try made.temporary.names(in: "store/tree/Applications/Editor.app") == ["f"])
  }

  @Test(.enabled(if: Program.isRoot, "a small disk needs root"))
  func fullDiskLeavesNothing() throws {
    let disk = try SmallDisk(bytes: 1 << 20, files: 200)
    try Store.create(at: disk.path + "/store", TestStore.description)
    let small = try Store(opening: disk.path + "/store", .exclusive)
    try shell("mkdir d; head -c 3000000 /dev/zero | tr '\\0' x > d/large")
    let directory = try TemporaryDirectory.open(source)
    do {
      _ = try StagedTree(directory.fd, in: small, for: "Applications", TreeCopy(uid: 0, gid: 0))
      Issue.record("there was room for it")
    } catch let failure as TreeCopyFailure {
      #expect(failure == TreeCopyFailure(path: "d/large", reason: .failed(doing: "copy", .ENOSPC)))
    }
    let staging = try TemporaryDirectory.open(disk.path + "/store/state/staging")
    #expect(try staging.fd.entries().isEmpty)
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// What is thrown away of a container, and what is not.
@Suite(.enabled(if: Program.isRoot, "only root can make what belongs to others")) struct PurgingTests {
  let fixture: TestFixture
  let containers: Containers
  let record: ContainerRecord
  var data: String { fixture.home + "/Library/Containers/com.example.editor/Data" }
  var caches: String { data + "/Library/Caches" }
  var staging: String { fixture.path + "/state/staging" }

  init() throws {
    fixture = try TestFixture()
    containers = try fixture.containers()
    let app = try InstalledApp.example()
    try fixture.registry.add(app)
    record = try #require(try containers.make(for: app, home: fixture.account.name).first)
  }

  @discardableResult
  func shell(_ script: String) throws -> String {
    let script = """
      as_owner() {
        setpriv --reuid=\(fixture.account.uid) --regid=\(fixture.account.gid) --clear-groups "$@"; }
      protect() { setfattr -n trusted.insula.flags -v "$1" "$2"; }
      \(script)
      """
    let result = try Program.run(["bash", "-ec", script], in: data)
    guard result.status == 0 else { throw MountedStore.Failure(words: result.errors) }
    return result.output
  }

  func purge(
    _ place: PurgePlace = .caches, enough: Int64? = nil, rest: @escaping Pause = {}
  ) throws -> Containers.Purge {
    try containers.purge(place, of: record, enough: enough, rest: rest) { (step) throws(Errno) in try step() }
  }

  /// Without the tag that such a directory has.
  func names(_ path: String) -> [String] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    return names.filter { $0 != CacheDirectoryTag.name }.sorted()
  }

  /// Everything below the app's home, with what each has beside its contents, but for times and numbers.
  private func picture(without path: String) throws -> String {
    let script = """
      find . -path './\(path)/*' -prune -o -printf '%p %y %m %U %G %l\\n' | sort
      find . -path './\(path)/*' -prune -o -print | sort | xargs -d '\\n' getfattr -h -d -m - 2>&1
      """
    return try Program.run(["sh", "-c", script], in: data).output
  }

  @Test(arguments: [(PurgePlace.tmp, "tmp"), (.caches, "Library/Caches")])
  func contentsGoAndTheDirectoryStaysAsItWas(place: PurgePlace, path: String) throws {
    try shell(
      """
      as_owner sh -ec 'mkdir -p \(path)/a/b; echo x >\(path)/a/b/c; mkfifo \(path)/p; ln -s nowhere \(path)/l
        mkdir -m 0 \(path)/closed; echo y >Documents/keep; mkdir Library/Preferences/d; chmod 711 \(path)'
      setfattr -n user.note -v words \(path)
      protect 0x00008000 \(path)
      setfacl -m u:daemon:rx \(path)
      """)
    let before = try picture(without: path)
    let freed = try purge(place)
    #expect(freed.left.isEmpty && freed.freed.count == 7 && freed.freed.bytes > 0)
    #expect(names("\(data)/\(path)") == [])
    let tag = try String(contentsOfFile: "\(data)/\(path)/CACHEDIR.TAG", encoding: .utf8)
    #expect(tag.hasPrefix("Signature: 8a477f597d28d172789f06886806bc55\n"))
    #expect(try purge(place).freed.count == 0 && containers.measure(place, of: record).count == 0)
    #expect(try picture(without: path) == before)
    #expect(names(staging) == [])
  }

  @Test func nothingIsDoneWhereNothingIs() throws {
    var isAsked = false
    let purge = try containers.purge(.tmp, of: record, rest: {}) { (step) throws(Errno) in
      isAsked = true
      try step()
    }
    #expect(purge.freed == FreedSpace() && purge.left.isEmpty && !isAsked)
  }

  @Test func nothingIsDoneToAnAppThatRuns() throws {
    try shell("as_owner touch Library/Caches/a")
    let error = #expect(throws: Errno.self) {
      try containers.purge(.caches, of: record, rest: {}) { (_) throws(Errno) in throw .EBUSY }
    }
    #expect(error == .EBUSY && names(caches) == ["a"] && names(staging) == [])
  }

  /// Each row makes something; `stays` is what is there afterwards, with the reason.
  @Test(arguments: [
    ("echo x >Library/Caches/roots", "roots", "belongs to root"),
    (
      "as_owner mkdir -p Library/Caches/a/b; echo x >Library/Caches/a/b/roots", "a/b/roots", "belongs to root"
    ),
    ("as_owner touch Library/Caches/own; protect 0x00000002 Library/Caches/own", "own", "the flags uchg"),
    (
      "as_owner touch Library/Caches/own; protect 0x00000002 Library/Caches", "own",
      "Data/Library/Caches was not removed: it has the flags uchg"
    ),
  ])
  func whatOthersHaveAndFlagsProtectComesBack(script: String, stays: String, reason: String) throws {
    try shell(script + "\nas_owner touch Library/Caches/goes || true")
    let purge = try purge()
    let left = try #require(purge.left.first)
    #expect("\(left.path) was not removed: \(left.reason)".contains(reason))
    #expect(FileManager.default.fileExists(atPath: "\(caches)/\(stays)"))
    #expect(names(staging) == [])
    // Unless the directory itself is protected.
    if !left.path.hasSuffix("Caches") {
      #expect(!FileManager.default.fileExists(atPath: caches + "/goes"))
      #expect(left.path == "\(record.path)/Data/Library/Caches/\(stays)")
    }
  }

  @Test(arguments: [
    "rm -r Library/Caches", "rm -r Library/Caches; ln -s ../Documents Library/Caches",
    "rm -r Library/Caches; ln -s / Library/Caches", "rm -r Library/Caches; touch Library/Caches",
    "rm -r Library/Caches; mkfifo Library/Caches",
  ])
  func whatIsNoDirectoryIsLeftAlone(script: String) throws {
    try shell("as_owner sh -ec '\(script)'; as_owner touch Documents/keep")
    let before = try picture(without: "nothing")
    let purge = try purge()
    #expect(purge.freed == FreedSpace() && purge.left.isEmpty)
    #expect(try picture(without: "nothing") == before)
  }

  @Test func anotherContainerInItsPlaceIsLeftAlone() throws {
    try shell("as_owner touch Library/Caches/a")
    let place = fixture.home + "/Library/Containers/com.example.editor"
    try #require(rename(place, place + ".old") == 0)
    try #require(try Program.run(["cp", "-a", place + ".old", place]).status == 0)
    #expect(try purge().freed == FreedSpace())
    #expect(names(caches) == ["a"])
  }

  @Test func somethingElseUnderTheNameComesBack() throws {
    try shell("as_owner sh -ec 'touch Library/Caches/a; mkdir Library/Other; touch Library/Other/b'")
    // The owner is quicker than the step.
    let error = #expect(throws: Errno.self) {
      try containers.purge(.caches, of: record, rest: {}) { (step) throws(Errno) in
        #expect(rename(caches, data + "/Library/Kept") == 0)
        #expect(rename(data + "/Library/Other", caches) == 0)
        try step()
      }
    }
    #expect(error == .EAGAIN)
    #expect(names(caches) == ["b"] && names(data + "/Library/Kept") == ["a"] && names(staging) == [])
  }

  @Test func whatAnotherWasStoppedInIsFinished() throws {
    try shell("as_owner sh -ec 'touch Library/Caches/a'; touch Library/Caches/roots")
    let contents = PurgedContents(.caches, of: record)
    // As it is between the two steps.
    try #require(rename(caches, "\(staging)/\(contents.name)") == 0)
    try shell("as_owner mkdir -m 700 Library/Caches")
    // Whoever takes over puts everything else aside.
    _ = try Store.openParts(of: fixture.store.directory)
    #expect(names(staging) == [contents.name])
    try containers.finishPurges()
    #expect(names(caches) == ["roots"] && names(staging) == [])
  }

  @Test func contentsOfNoContainerGo() throws {
    let directory = "\(staging)/purged-tmp-\(UUIDText.random())"
    try FileManager.default.createDirectory(atPath: directory + "/a", withIntermediateDirectories: true)
    try containers.finishPurges()
    #expect(names(staging) == [])
  }

  /// Whose it was says its owner; what others have in it is nobody's to remove.
  @Test func othersThingsInContentsOfNoContainerStay() throws {
    let directory = "\(staging)/purged-tmp-\(UUIDText.random())"
    try FileManager.default.createDirectory(atPath: directory + "/a", withIntermediateDirectories: true)
    for name in ["/own", "/a/others", "/a/own"] {
      #expect(FileManager.default.createFile(atPath: directory + name, contents: nil))
      let user: UInt32 = name == "/a/others" ? 65_533 : 65_534
      #expect(chown(directory + name, user, user) == 0)
    }
    #expect(chown(directory, 65_534, 65_534) == 0 && chown(directory + "/a", 65_534, 65_534) == 0)
    try containers.finishPurges()
    #expect(names(directory) == ["a"] && names(directory + "/a") == ["others"])
  }

  @Test func ownersNewFileIsNotReplaced() throws {
    try shell("echo roots >Library/Caches/name")
    let caches = caches
    let purge = try containers.purge(.caches, of: record, rest: {}) { (step) throws(Errno) in
      try step()
      #expect((try? "owners".write(toFile: caches + "/name", atomically: false, encoding: .utf8)) != nil)
    }
    #expect(!purge.left.isEmpty)
    #expect(try String(contentsOfFile: caches + "/name", encoding: .utf8) == "owners")
    let other = try #require(names(caches).first { $0.hasPrefix(".left-") })
    #expect(try String(contentsOfFile: "\(caches)/\(other)", encoding: .utf8) == "roots\n")
  }

  /// A hundred files of 64 KiB, of which so many have to go.
  @Test(arguments: [(1, 1), (65536, 1), (65537, 2), (1_966_080, 30)] as [(Int64, Int)])
  func onlyWhatWasUsedLongestAgoGoesWhereThatIsEnough(bytes: Int64, files: Int) throws {
    try shell(
      """
      cd Library/Caches; as_owner mkdir a b
      for i in $(seq 100 199); do
        [ $((i % 2)) = 0 ] && d=a || d=b
        as_owner sh -c "head -c 65536 /dev/zero >$d/$i; touch -d @$((1000000000 + i)) $d/$i"
      done
      as_owner sh -c 'echo x >a/oldest; touch -d @900000000 a/oldest'; protect 0x00000002 a/oldest
      """)
    let purge = try containers.purge(.caches, of: record, enough: bytes, rest: {}) { (step) throws(Errno) in
      try step()
    }
    #expect(purge.left.isEmpty && purge.freed.bytes >= bytes && purge.freed.bytes < bytes + 80 << 10)
    let left = try Program.run(["find", caches, "-type", "f", "-printf", "%f\n"]).output
      .split(separator: "\n").map(String.init).filter { $0 != CacheDirectoryTag.name }.sorted()
    #expect(left == (100 + files..<200).map { "\($0)" } + ["oldest"])
    #expect(names(staging) == [])
  }

  /// What is left over is not worth to be spared.
  @Test func allGoesWhereNotEnoughCanBeChosen() throws {
    try shell("as_owner sh -c 'cd Library/Caches; echo x >a; mkfifo p; mkdir d; echo y >d/b; ln d/b d/c'")
    let purge = try containers.purge(.caches, of: record, enough: 1 << 30, rest: {}) { (step) throws(Errno) in
      try step()
    }
    #expect(purge.left.isEmpty && names(caches) == [])
  }

  @Test func measureIsWhatAPurgeFrees() throws {
    try shell(
      """
      as_owner sh -ec 'mkdir -p tmp/a/b; head -c 300000 /dev/urandom >tmp/a/b/c
        ln tmp/a/b/c Documents/c; echo x >tmp/d'
      """
    )
    let measured = try containers.measure(.tmp, of: record)
    let purged = try purge(.tmp).freed
    // Without the directory itself, which another one has replaced.
    #expect(measured.count == purged.count - 1)
    #expect(measured.bytes < purged.bytes && purged.bytes < 300_000)
  }

  @Test func lastRunIsKeptWithTheContainer() throws {
    #expect(containers.lastRun(record) == nil)
    fixture.store.noteRun(of: record.path, at: 1_795_645_712)
    #expect(containers.lastRun(record) == 1_795_645_712)
    for damaged in ["0x", "0x01", "0xffffffffffffffff"] {
      let set = [
        "setfattr", "-n", "trusted.insula.ran", "-v", damaged, fixture.path + "/tree/" + record.path,
      ]
      try #require(try Program.run(set).status == 0)
      #expect(containers.lastRun(record) == nil)
    }
  }
}

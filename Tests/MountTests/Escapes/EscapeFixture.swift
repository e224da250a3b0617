// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A mounted store, an app with the programs of Tests/Escapes in its bundle, and prizes outside of its view.
final class EscapeFixture {
  let fixture: PlaceFixture
  let prizes = Prizes()
  /// What an attempt says that has nothing to show.
  let mark = "mark-\(UUID().uuidString)"
  private let neighbour: TemporaryAccount
  private let escape: String
  /// Where attempts work outside: in the owner's home in the tree, and where root may be.
  private let work: String
  private let rootWork: String
  private let victimPlace: String
  private var victim: Process?
  /// The other app, which runs while the attempts are made.
  private var otherApp: Process?
  private var disk: String?
  private var variables: [String: String] = [:]
  private let isRootless: Bool

  private static let sources = Checkout.path("Tests/Escapes")

  /// Whether the programs can be made and run here; says what is missing.
  static let isPossible: Bool = {
    guard MountedStore.isPossible else { return false }
    for (program, why) in [("cc", "to make the attempts"), ("bwrap", "to run apps")] {
      guard (try? Program.run(["sh", "-c", "command -v \(program)"]))?.status == 0 else {
        print("NO ATTEMPT TO GET OUT OF A VIEW IS MADE: '\(program)' is missing, which it takes \(why)")
        return false
      }
    }
    return true
  }()

  private static let compiled = Result {
    let made = try TemporaryDirectory()
    let result = try Program.run([
      "sh", "-c",
      "cc -Wall -Wextra -Werror -O1 -o \"$1\" \"$2\"/*.c -lpthread -ldl -lutil -lrt", "sh",
      made.appending("escape"), sources,
    ])
    guard result.status == 0 else { throw MountedStore.Failure(words: result.errors) }
    return made
  }

  /// The path of the programs of Tests/Escapes, which are one.
  static func program() throws -> String { try compiled.get().appending("escape") }

  init(rootless: Bool = false, entitlements: [(key: String, value: String)] = []) throws {
    isRootless = rootless
    let program = try Self.program()
    fixture = try PlaceFixture(rootless: rootless, entitlements: entitlements) { bundle in
      try FileManager.default.copyItem(atPath: program, toPath: "\(bundle)/Contents/MacOS/escape")
      try FileManager.default.copyItem(atPath: "/usr/bin/true", toPath: "\(bundle)/Contents/MacOS/tool")
    }
    let others = "<array><string>group.org.other</string></array>"
    try fixture.install(
      "Other", entitlements: [(key: "com.apple.security.application-groups", value: others)])
    neighbour = try TemporaryAccount()
    let words = fixture.cast.words
    escape = fixture.cast.workshop.appending("escape")
    try FileManager.default.copyItem(atPath: program, toPath: escape)
    work = "\(words["home"] ?? "")/attempts"
    rootWork = try fixture.cast.workshop.makeDirectory("attempts", mode: 0o777)
    victimPlace = try fixture.cast.workshop.makeDirectory("victim", mode: 0o777)
    try fixture.perform("mkdir -p \(work)/library && cp -a $bundle \(work)/Copy.app", as: .owner)
    try makePrizes()
    try startVictim()
    try startOtherApp()
    try collectVariables()
  }

  deinit {
    victim?.terminate()
    victim?.waitUntilExit()
    otherApp?.terminate()
    otherApp?.waitUntilExit()
    if let disk { _ = try? Program.run(["losetup", "-d", disk]) }
    // What the attempts put where all may.
    for (key, command) in [("SHM", "-m"), ("MSG", "-q")] {
      if let id = variables[key] { _ = try? Program.run(["ipcrm", command, id]) }
    }
    if let name = variables["PRIZE_NAME"] { unlink("/dev/shm\(name)") }
  }

  // MARK: Prizes

  private var owner: Account? { fixture.cast.account(.owner)?.account }

  private func makePrizes() throws {
    let owner = try #require(owner)
    for (variable, place) in [
      ("PRIZE_HOST", "/tmp"), ("PRIZE_VAR", "/var/tmp"), ("PRIZE_RUN", "/run"), ("PRIZE_HOMES", "/home"),
    ] {
      try prizes.make(variable, below: place, owner: owner.uid)
    }
    try prizes.make("PRIZE_ROOT", below: "/root", mode: 0o700)
    let mounted = fixture.cast.mounted
    func path(_ app: String, _ place: String) throws -> String {
      let asked = ["path", app, place, "--user", owner.name, "--store", mounted.store]
      let result = try mounted.run(asked)
      try #require(result.status == 0, "\(result.errors)")
      return String(result.output.dropLast())
    }
    let places = [
      ("PRIZE_OTHER", try path("org.example.other", "documents")),
      ("PRIZE_GROUP", try path("org.example.other", "group:group.org.other")),
      ("PRIZE_HOME", mounted.path("Users/\(owner.name)/Documents")),
    ]
    for (variable, place) in places {
      try fixture.perform("printf %s \(prizes.secret) >'\(place)/secret'", as: .owner)
      prizes.alias(variable, "\(place)/secret")
    }
    let store = "\(mounted.store)/tree" + places[0].1.dropFirst(mounted.point.count)
    prizes.alias("PRIZE_STORE", "\(store)/secret")
    // In a store of one user's, nobody else has a home; what all users share stands for it.
    if isRootless {
      try fixture.perform("printf %s \(prizes.secret) >\(mounted.path("Users/Shared/secret"))", as: .owner)
      return prizes.alias("PRIZE_NEIGHBOUR", mounted.path("Users/Shared/secret"))
    }
    let added = try mounted.run("user", "add", neighbour.account.name, "--store", mounted.store)
    try #require(added.status == 0, "\(added.errors)")
    let shown = "Users/\(neighbour.account.name)/Public"
    try Data(prizes.secret.utf8).write(to: URL(fileURLWithPath: mounted.path("\(shown)/secret")))
    prizes.alias("PRIZE_NEIGHBOUR", mounted.path("\(shown)/secret"))
  }

  private func startVictim() throws {
    let owner = try #require(owner)
    try Data(prizes.secret.utf8).write(to: URL(fileURLWithPath: victimPlace + "/secret"))
    chmod(victimPlace + "/secret", 0o666)
    let name = "/insula-\(UUID().uuidString.prefix(8))"
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [
      "setpriv", "--reuid=\(owner.uid)", "--regid=\(owner.gid)", "--init-groups", escape, "victim",
      victimPlace,
      prizes.secret,
    ]
    process.environment = ["SECRET": prizes.secret, "PRIZE_NAME": name, "PATH": "/usr/bin:/bin"]
    try Program.withSignalsUnblocked { try process.run() }
    victim = process
    variables["PRIZE_NAME"] = name
    guard eventually({ access(victimPlace + "/victim", F_OK) == 0 }) else {
      throw MountedStore.Failure(words: "the victim does not tell where it is")
    }
    for line in (FD.text(of: victimPlace + "/victim", limit: 4096) ?? "").split(separator: "\n") {
      let parts = line.split(separator: "=", maxSplits: 1).map(String.init)
      if parts.count == 2 { variables[parts[0]] = parts[1] }
    }
  }

  private func startOtherApp() throws {
    let owner = try #require(owner)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [
      "setpriv", "--reuid=\(owner.uid)", "--regid=\(owner.gid)", "--init-groups", Program.insula, "run",
      "--store", fixture.cast.mounted.point, "org.example.other", "--", "sleep", "100000",
    ]
    process.environment = ["PATH": "/usr/bin:/bin"]
    process.standardInput = FileHandle.nullDevice
    try Program.withSignalsUnblocked { try process.run() }
    otherApp = process
    func child(of pid: Int32) -> Int32? {
      FD.text(of: "/proc/\(pid)/task/\(pid)/children", limit: 4096)?.split(separator: " ").first.flatMap {
        Int32($0)
      }
    }
    let isThere = eventually {
      var last = process.processIdentifier
      while let next = child(of: last) { last = next }
      variables["OTHER_APP"] = "\(last)"
      return ProcessID.field("Name", of: "\(last)") == "sleep"
    }
    guard isThere else { throw MountedStore.Failure(words: "the other app does not start") }
  }

  // MARK: Variables

  private func collectVariables() throws {
    let mounted = fixture.cast.mounted
    let words = fixture.cast.words
    let owner = try #require(owner)
    for (variable, path) in prizes.paths { variables[variable] = path }
    let other = String((prizes.paths["PRIZE_OTHER"] ?? "").dropFirst(mounted.point.count))
    let image = try mounted.temporary.write(
      prizes.secret + String(repeating: " ", count: 1 << 20), to: "image")
    let attached = try Program.run(["losetup", "-f", "--show", image])
    if attached.status == 0 {
      let device = String(attached.output.dropLast())
      disk = device
      var status = FileStatus()
      if stat(device, &status) == 0 {
        variables["DISK_MAJOR"] = "\(status.st_rdev >> 8 & 0xfff)"
        variables["DISK_MINOR"] = "\(status.st_rdev & 0xff)"
      }
    }
    let library = try Program.run(["sh", "-c", "ldconfig -p | awk '/libm\\.so\\.6/ { print $NF; exit }'"])
    let socket = isRootless ? "\(mounted.store)/state/control.sock" : try mounted.socket()
    variables.merge([
      "MARK": mark, "POINT": mounted.point, "STORE": mounted.store, "CONTROL": socket,
      "DAEMON": "\(try mounted.daemon() ?? 0)", "SOCKET": "\(victimPlace)/socket",
      "VICTIM_PLACE": victimPlace,
      "DISK": disk ?? "/nowhere", "LIBRARY": String(library.output.dropLast()),
      "CONTAINERS": "\(words["home"] ?? "")/Library/Containers", "REALHOME": words["home"] ?? "",
      "CONTAINER_BELOW_TREE": "Users/\(owner.name)/Library/Containers/org.example.editor",
      "NEIGHBOUR": isRootless ? "Shared" : neighbour.account.name, "PRIZE_BELOW_TREE": other,
      "STRANGER": neighbour.account.name,
      "OTHER_BELOW_USERS": String(other.dropFirst("/Users".count)),
    ]) { $1 }
  }

  private func settings(inside: Bool, asRoot: Bool) -> [String] {
    let words = fixture.cast.words
    let place = asRoot ? rootWork : work
    var all = variables
    if inside {
      let bundle = words["bundle"] ?? ""
      all["ESCAPE"] = "\(bundle)/Contents/MacOS/escape"
      all["APP_SOCKET"] = "/run/insula/app.sock"
      all["COPY"] = bundle
      all["GROUP"] = words["group"] ?? ""
      all["LEAVE"] = words["documents"] ?? ""
      all["START"] = words["documents"] ?? ""
      all["TEMPORARY"] = "/tmp"
    } else {
      all["ESCAPE"] = escape
      all["APP_SOCKET"] = "/proc/\(variables["OTHER_APP"] ?? "")/root/run/insula/app.sock"
      all["COPY"] = "\(work)/Copy.app"
      for name in [
        "GROUP", "LEAVE", "START", "HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR",
      ] {
        all[name] = place
      }
      all["TEMPORARY"] = rootWork
      all["PATH"] = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    }
    all["SHARED"] = "/dev/shm"
    return all.map { "\($0.key)=\($0.value)" }
  }

  // MARK: Attempts

  /// What came of an attempt: nothing, or what it has got; nil if it was not made at all.
  struct Outcome: CustomStringConvertible {
    let gains: [String]
    let result: ProgramResult
    var description: String {
      "\(gains) \(result.status) \(result.output.prefix(500)) \(result.errors.prefix(1500))"
    }
  }

  /// What some attempts look for besides the secret.
  private func secrets(_ attempt: Attempt) -> [String] {
    switch attempt.name {
    case "list_of_mounts", "mounts_of_the_first_namespace": [prizes.secret, fixture.cast.mounted.store]
    case "names_of_all_sockets": [prizes.secret, String((variables["PRIZE_NAME"] ?? "/").dropFirst())]
    // What it prints is all that it was told.
    case "environment_of_the_processes_above": [prizes.secret]
    default: [prizes.secret, mark]
    }
  }

  /// Where it succeeds, if need be after some tries: on a busy machine races are not won at once.
  func makeOutside(_ attempt: Attempt) throws -> Outcome {
    var outcome = try make(attempt, inside: false)
    for _ in 0..<9 where outcome.gains.isEmpty { outcome = try make(attempt, inside: false) }
    return outcome
  }

  func make(_ attempt: Attempt, inside: Bool) throws -> Outcome {
    let owner = try #require(owner)
    let asRoot = !inside && attempt.takesRoot
    // Another file may be there by now.
    let handle = try Program.run([escape, "handle", prizes.paths["PRIZE_HOST"] ?? ""]).output
    (variables["HANDLE_TYPE"], variables["HANDLE"]) = (
      String(handle.prefix { $0 != " " }), String(handle.drop { $0 != " " }.dropFirst().dropLast())
    )
    let settings = settings(inside: inside, asRoot: asRoot)
    let become = asRoot ? [] : ["setpriv", "--reuid=\(owner.uid)", "--regid=\(owner.gid)", "--init-groups"]
    let line = "echo tried >&2; OLDPWD=$PWD; cd \"$START\" || exit 98; \(attempt.line)"
    let call = ["/usr/bin/env"] + settings + ["/bin/sh", "-c", line]
    let run = [Program.insula, "run", "--store", fixture.cast.mounted.point, PlaceFixture.app, "--"] + call
    // The surroundings are outside, with all that there is to know.
    let outer =
      ["env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "SECRET=\(prizes.secret)"]
      + prizes.paths.map { "\($0.key)=\($0.value)" } + ["ESCAPE=\(escape)"]
    let wrapped = outer + ["sh", "-c", attempt.around, "sh"] + (inside ? run : call)
    let result = try Program.run(become + wrapped)
    // A process that stays does so for longer than this.
    if attempt.name == "outliving_the_app" { sleep(3) }
    if attempt.name.contains("signal") || attempt.name.contains("niceness") { usleep(300_000) }
    var gains = secrets(attempt).filter { result.output.contains($0) }
    gains += prizes.restore(isRootless ? Self.hosts : Self.hosts + Self.inTree)
    if isRootless { gains += try restoreAsOwner() }
    for trace in [
      victimPlace + "/signalled", "\(work)/outlived", "\(rootWork)/outlived",
      "\(fixture.cast.words["documents"] ?? "")/outlived",
    ]
    where try Program.run(become + ["rm", trace]).status == 0 {
      gains.append("\(trace) was there")
    }
    return Outcome(gains: gains, result: result)
  }

  private static let hosts = ["PRIZE_HOST", "PRIZE_VAR", "PRIZE_RUN", "PRIZE_HOMES", "PRIZE_ROOT"]
  private static let inTree = ["PRIZE_OTHER", "PRIZE_GROUP", "PRIZE_HOME"]

  /// Where root can't look.
  private func restoreAsOwner() throws -> [String] {
    try Self.inTree.compactMap { variable in
      guard let path = prizes.paths[variable] else { return nil }
      let directory = URL(fileURLWithPath: path).deletingLastPathComponent().path
      let line = """
        cd '\(directory)'; found=$(ls -A); test "$(cat secret)" = \(prizes.secret) &&
          case $found in .com.apple*secret | secret) exit 0;; esac
        find . -mindepth 1 ! -name '.com.apple.*' -delete; printf %s \(prizes.secret) >secret; echo "$found"
        """
      let found = try fixture.perform(line, as: .owner)
      return found.isEmpty ? nil : "\(variable): \(found)"
    }
  }
}

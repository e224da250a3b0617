// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// What a command knows of the world that it was started in; tests make their own.
struct Context: Sendable {
  var environment: [String: String]
  var uid: UInt32
  var home: String
  var currentDirectory: String
  var console: Console
  /// What the configuration files say, for commands that go by them: see `configured`.
  var configuration = Configuration()
  /// The file of these that is root's.
  var machineConfiguration = "/etc/insula/insula.conf"
  /// What `insula acl` and its like go through.
  var aliases = XattrAliases.mounted
  /// Who is who on this machine.
  var names = AccountNames.ofThisMachine.cached()
  /// The time, in seconds since 1970.
  var now: @Sendable () -> Int64 = { Int64(time(nil)) }
  /// Sees to it that this process has ended after so many seconds, whatever it waits for.
  var endAfter: @Sendable (UInt32) -> Void = { seconds in
    signal(SIGALRM) { _ in _exit(0) }
    alarm(seconds)
  }
  /// Reads what is piped into the command, up to so many bytes.
  var input: @Sendable (Int) throws -> [UInt8] = { limit in try FD(0).readToEnd(limit: limit) }

  /// The real one.
  static func current() -> Context {
    let environment = Self.processEnvironment()
    let uid = ProcessID.user
    let home = environment["HOME"] ?? Account.numbered(uid)?.home ?? "/"
    var console = Console.standard
    // See no-color.org: whatever it says, as long as it says something.
    let wantsNoColor = environment["NO_COLOR"].map { !$0.isEmpty } ?? false
    if wantsNoColor || environment["TERM"] == "dumb" { console.manner.colored = [] }
    return Context(
      environment: environment, uid: uid, home: home, currentDirectory: workingDirectory(),
      console: console)
  }

  private static func workingDirectory() -> String {
    let buffer = UnsafeMutablePointer<CChar>.allocate(capacity: Int(PATH_MAX))
    defer { buffer.deallocate() }
    return getcwd(buffer, Int(PATH_MAX)).map { String(cString: $0) } ?? "/"
  }

  var isRoot: Bool { uid == 0 }

  /// The socket of the app in whose view this runs; nil outside of apps.
  var appSocket: String? { environment[AppSocket.variable].flatMap { $0.isEmpty ? nil : $0 } }

  /// The store that is meant when none is named.
  var defaultStore: String { isRoot ? machineStore : setting(.userStore).value }

  /// The store that all users share.
  var machineStore: String { setting(.machineStore).value }

  /// The program that fetches files.
  var curl = "/usr/bin/curl"

  /// Where that is unless root has chosen another place.
  var builtInMachineStore = "/var/lib/insula"

  /// The path of the store that is meant: the one that is named, else one's own, or the machine's if there is
  /// no such.
  func store(_ named: String?) -> String { absolute(namedStore(named)) }

  /// The same with the links that the path has.
  func namedStore(_ named: String?) -> String {
    if let named { return unresolved(named) }
    let isMachines = !isRoot && !Self.exists(defaultStore) && Self.exists(machineStore)
    return unresolved(isMachines ? machineStore : defaultStore)
  }

  private static func exists(_ path: String) -> Bool { StoreIdentity(at: path) != nil }

  /// The mount point that is meant when none is named.
  var defaultMountPoint: String { setting(isRoot ? .machineMountPoint : .userMountPoint).value }

  /// Where the daemons' sockets are.
  var controlPlace: ControlPlace {
    ControlPlace(uid: uid, runtimeDirectory: environment["XDG_RUNTIME_DIR"])
  }

  /// The path from the root, links resolved as far as the path exists.
  ///
  /// The last name may be missing, or a mount whose daemon is dead.
  func absolute(_ path: String) -> String {
    let full = unresolved(path)
    if let real = realPath(full) { return real }
    var parts = full.parts(between: "/")
    guard let last = parts.popLast(), last != "..", last != "." else { return full }
    let parent = "/" + parts.joined(separator: "/")
    let real = realPath(parent) ?? parent
    return real == "/" ? "/\(last)" : "\(real)/\(last)"
  }

  /// The path from the root, with the links that it has.
  func unresolved(_ path: String) -> String { path.begins(with: "/") ? path : currentDirectory + "/" + path }

  /// The path as the kernel is to walk it, for a file that a person named.
  ///
  /// A relative one stays relative where it can: who may not search a directory above may be here all the
  /// same.
  func reachable(_ path: String) -> String {
    if path.begins(with: "/") || currentDirectory == Self.workingDirectory() { return path }
    return currentDirectory + "/" + path
  }

  private static func processEnvironment() -> [String: String] {
    var result: [String: String] = [:]
    var position = environ
    while let entry = position.pointee {
      let text = String(cString: entry)
      if let equals = text.utf8.firstIndex(of: UInt8(ascii: "=")) {
        result[String(text[..<equals])] = String(text[text.utf8.index(after: equals)...])
      }
      position += 1
    }
    return result
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy

/// `/Network/Users`, where each home that the joined network has on its server has a link.
///
/// A link leads to the home's place in `/Users`, and nowhere as long as this machine has no such home.
struct NetworkUsers {
  /// A server that has more is not believed.
  private static let most = 10_000
  private static let name = "Users"

  let mountPoint: String

  /// The homes in a directory of the server: what can be an account's name, and is a directory.
  static func homes(in directory: FD) throws -> Set<String> {
    do throws(Errno) {
      let names = try directory.possibleDirectories(atMost: most)
      return Set(names.compactMap { String(validating: $0, as: UTF8.self) }.filter(canBeAccount))
    } catch {
      guard error == .EOVERFLOW else { throw error }
      throw CommandFailure(.failed, "the server has more than \(most) homes")
    }
  }

  /// Commands would take a hyphen for an option, and passwd(5) ends the name at a colon.
  private static func canBeAccount(_ name: String) -> Bool {
    let isReserved = [".", "-"].contains { name.hasPrefix($0) }
    return !isReserved && !name.utf8.contains(UInt8(ascii: ":")) && name.sanitized == name
  }

  /// Makes the links of these, and removes those of others; what somebody else has put there stays.
  func set(_ homes: Set<String>) throws {
    guard let users = try open(making: !homes.isEmpty) else { return }
    let known = try Self.links(in: users.fd)
    // A directory that is not there for a moment is empty with some servers.
    guard !homes.isEmpty || known.isEmpty else {
      throw CommandFailure(.failed, "the server has no homes at all, and this machine knows \(known.count)")
    }
    for name in known.subtracting(homes) { try users.fd.remove(name, directory: false) }
    for name in homes.subtracting(known) { try Self.link(name, in: users.fd) }
  }

  func add(_ home: String) throws(Errno) {
    guard let users = try open(making: true) else { return }
    try Self.link(home, in: users.fd)
  }

  func remove(_ home: String) throws(Errno) {
    guard let users = try open(making: false) else { return }
    if Self.isLink(home, in: users.fd) { try users.fd.remove(home, directory: false) }
  }

  func removeAll() throws(Errno) {
    guard let users = try open(making: false) else { return }
    for name in try Self.links(in: users.fd) { try users.fd.remove(name, directory: false) }
    let network = try openNetwork()
    do throws(Errno) { try network.fd.remove(Self.name, directory: true) } catch .ENOTEMPTY {}
  }

  // MARK: Its directory

  private func openNetwork() throws(Errno) -> OwnedFD {
    try FD.cwd.openFollowing("\(mountPoint)/Network", O_RDONLY | O_DIRECTORY)
  }

  private func open(making: Bool) throws(Errno) -> OwnedFD? {
    let network = try openNetwork()
    if network.fd.has(Self.name) { return try network.fd.openDirectory(Self.name) }
    guard making else { return nil }
    let users = try network.fd.openDirectory(Self.name, makingWith: 0o755)
    // It is for everyone to see, whatever the umask of whoever calls.
    try users.fd.changeMode(0o755)
    return users
  }

  // MARK: Links

  private static func target(of home: String) -> String { "../../Users/\(home)" }

  private static func link(_ home: String, in users: FD) throws(Errno) {
    do throws(Errno) { try users.makeSymlink(home, to: target(of: home)) } catch .EEXIST {}
  }

  private static func isLink(_ name: String, in users: FD) -> Bool {
    (try? users.linkTarget(of: name))?.elementsEqual(target(of: name).utf8) == true
  }

  private static func links(in users: FD) throws(Errno) -> Set<String> {
    let names = try users.entries { _, type in type == UInt8(DT_LNK) }
      .map { String(decoding: $0.name, as: UTF8.self) }
    return Set(names.filter { isLink($0, in: users) })
  }
}

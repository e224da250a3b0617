// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy

/// What a computer of the network has for others: it is at `/Network/Servers/HOST/NAME`.
struct NetworkShare: Equatable, Sendable {
  let host: String
  let name: String
  let address: ServerAddress
  let isReadOnly: Bool
  /// Whether it is mounted once, for everyone; else each user has it by an account of their own there.
  let isForAll: Bool
  /// Whether the computer itself has said so, and nobody on this machine.
  let isAnnounced: Bool

  /// Nil for names that can't be those of directories.
  init?(
    host: String, name: String, address: ServerAddress, isReadOnly: Bool = false, isForAll: Bool,
    isAnnounced: Bool = false
  ) {
    guard Self.isName(host), Self.isName(name) else { return nil }
    self.host = host
    self.name = name
    self.address = address
    self.isReadOnly = isReadOnly
    self.isForAll = isForAll
    self.isAnnounced = isAnnounced
  }

  /// By which names are told apart: those that differ by case are one.
  static func key(_ name: String) -> String {
    String(decoding: foldedName(Array(name.utf8)) ?? Array(name.utf8), as: UTF8.self)
  }

  /// No more computers are shown, and none of the file's is left out for one that announces itself.
  static let mostHosts = 256

  /// What a file says and computers announce, taken together.
  ///
  /// Nobody gets between a user and a computer that the administrator has named, whatever the spelling.
  static func known(_ file: NetworkFile, _ announced: [NetworkShare]) -> [NetworkShare] {
    let named = Set(file.shares.map { key($0.host) })
    var spellings: [String: String] = [:]
    let others = announced.filter { share in
      let key = key(share.host)
      guard !named.contains(key) else { return false }
      if spellings[key] == nil { spellings[key] = share.host }
      return spellings[key].map(share.host.hasSameBytes) ?? false
    }
    let room = max(0, mostHosts - named.count)
    let shown = Set(Set(others.map(\.host)).inOrder(by: <).prefix(room))
    return file.shares + others.filter { shown.contains($0.host) }
  }

  private static func isName(_ text: String) -> Bool {
    (1...200).contains(text.utf8.count) && text.utf8.first != UInt8(ascii: ".")
      && !text.utf8.contains { $0 == UInt8(ascii: "/") || $0 < 0x20 || $0 == 0x7f }
  }
}

/// What a file says of the network: a line for each share, `HOST SHARE URL`, and words after it.
struct NetworkFile: Equatable, Sendable {
  private(set) var shares: [NetworkShare] = []
  /// What was not understood, with the number of its line.
  private(set) var problems: [String] = []

  static let sizeLimit = 1 << 16
  /// No more are taken from one source.
  static let mostShares = 1024

  init(_ text: String) {
    var hosts: [String: String] = [:]
    var seen: Set<String> = []
    for (index, line) in text.parts(between: "\n", keepingEmpty: true).enumerated() {
      let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" || $0 == "\r" }).map(String.init)
      guard let first = words.first, !first.hasPrefix("#") else { continue }
      do throws(Refusal) {
        let share = try Self.share(words).get()
        let host = NetworkShare.key(share.host)
        if let other = hosts[host], !other.hasSameBytes(as: share.host) {
          throw Refusal(reason: "\(share.host) was written \(other) before")
        }
        guard hosts[host] != nil || hosts.count < NetworkShare.mostHosts else {
          throw Refusal(reason: "there are more than \(NetworkShare.mostHosts) computers")
        }
        guard shares.count < Self.mostShares else {
          throw Refusal(reason: "there are more than \(Self.mostShares) shares")
        }
        guard seen.insert(host + "/" + NetworkShare.key(share.name)).inserted else {
          throw Refusal(reason: "\(share.host)/\(share.name) is there twice")
        }
        hosts[host] = share.host
        shares.append(share)
      } catch {
        problems.append("line \(index + 1): \(error.reason)")
      }
    }
  }

  /// One that does not count.
  init(problem: String) { problems = [problem] }

  private struct Refusal: Error { let reason: String }

  private static func share(_ words: [String]) -> Result<NetworkShare, Refusal> {
    guard words.count >= 3 else {
      return .failure(Refusal(reason: "it needs a host, a name and a URL"))
    }
    guard let address = ServerAddress(words[2]) else {
      return .failure(Refusal(reason: "'\(words[2].sanitized)' is no URL that is known"))
    }
    var isReadOnly = false
    // Where the server judges by the accounts of its machine, one connection serves all.
    var isForAll = [.nfs, .smb, .gluster].contains(address.scheme)
    for word in words.dropFirst(3) {
      switch word {
      case "read-only": isReadOnly = true
      case "all": isForAll = true
      case "each":
        guard address.isByProgram else {
          return .failure(Refusal(reason: "each user can't have \(address.scheme.rawValue) for themselves"))
        }
        isForAll = false
      default:
        return .failure(
          Refusal(reason: "'\(word.sanitized)' is not known; there are read-only, all and each"))
      }
    }
    let share = NetworkShare(
      host: words[0], name: words[1], address: address, isReadOnly: isReadOnly, isForAll: isForAll)
    guard let share else {
      return .failure(Refusal(reason: "a name begins with a dot, is too long, or has a slash in it"))
    }
    return .success(share)
  }
}

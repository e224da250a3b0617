// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy

/// Where packed apps and their index come from: a directory, or a server of files.
///
/// Nothing that comes from there is believed: names are checked, sizes are bounded, links are not followed.
enum PackageSource {
  case directory(String)
  case server(String)

  /// What `--all` and `--from` take.
  static let placeholder = "DIR|URL"

  init(_ text: String, _ context: Context, of verb: CommandDescription) throws(UsageError) {
    guard let end = text.firstPosition(of: "://") else {
      self = .directory(context.absolute(text))
      return
    }
    let (scheme, rest) = (text.prefix(end).lowercased(), String(text.dropFirst(end + 3)))
    let isPlain = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && ![0x22, 0x3c, 0x3e, 0x5c].contains($0) }
    switch scheme {
    case "file":
      guard rest.begins(with: "/"), !rest.utf8.contains(UInt8(ascii: "%")) else {
        throw verb.error("'\(text.sanitized)' can't be used; give the directory by its path")
      }
      self = .directory(rest)
    case "http", "https":
      guard isPlain, !rest.isEmpty, !rest.begins(with: "/"), !rest.hasPrefix("-"),
        !rest.utf8.contains(where: { [UInt8(ascii: "?"), UInt8(ascii: "#"), UInt8(ascii: "@")].contains($0) })
      else {
        throw verb.error(
          "'\(text.sanitized)' is no address of a directory; it may have no name of a user, '?' or '#' in it")
      }
      var address = rest
      while address.ends(with: "/") { address.removeLast() }
      self = .server("\(scheme)://\(address)/")
    default:
      throw verb.error(
        "'\(scheme.sanitized)' addresses can't be used; give a directory, or an http, https or file address")
    }
  }

  /// As people, and the notes of what was seen, know it.
  var name: String {
    switch self {
    case .directory(let path): path
    case .server(let address): address
    }
  }

  /// Opens a file of at most so many bytes; one that is fetched is unnamed, and nobody else's.
  func open(_ file: String, limit: Int64, _ context: Context) throws -> OwnedFD {
    switch self {
    case .directory(let path): try Self.open(file, in: path, limit: limit, context)
    case .server(let address):
      try Download(context).fetch(address + Self.escaped(file), limit: limit)
    }
  }

  private static func open(
    _ file: String, in path: String, limit: Int64, _ context: Context
  ) throws -> OwnedFD {
    let directory = try context.openDirectory(path)
    let place = "\(path)/\(file)".sanitized
    let opened = try Self.open(file, in: directory.fd, place)
    let status = try opened.fd.status()
    guard status.isRegular else { throw CommandFailure(.failed, "\(place) is not a regular file") }
    guard status.st_size <= limit else {
      throw CommandFailure(.failed, "\(place) is longer than the \(limit) bytes that it should have at most")
    }
    return opened
  }

  private static func open(
    _ file: String, in directory: FD, _ place: String
  ) throws(CommandFailure) -> OwnedFD {
    do throws(Errno) {
      // Opening a pipe must not wait for whoever writes into it.
      return try file.withName { (name) throws(Errno) in
        try directory.open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY)
      }
    } catch {
      let why = error == .ELOOP ? "it is a symbolic link" : error.messageAboutPath
      throw CommandFailure(error, "can't open \(place): \(why)")
    }
  }

  /// A name as it stands in an address.
  private static func escaped(_ name: String) -> String {
    var text = ""
    for byte in name.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f, 0x7e:
        text.unicodeScalars.append(Unicode.Scalar(byte))
      default: text += "%" + [byte].asHexadecimal
      }
    }
    return text
  }
}

extension String {
  /// How many characters stand before a text; nil if it is not there.
  fileprivate func firstPosition(of text: String) -> Int? {
    var position = 0
    var rest = self[...]
    while !rest.isEmpty {
      if rest.hasPrefix(text) { return position }
      rest = rest.dropFirst()
      position += 1
    }
    return nil
  }
}

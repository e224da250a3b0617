// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// The address of a directory on a server, as a URL has it.
///
/// Programs are started with parts of it, so nothing in it can be taken for an option.
package struct ServerAddress: Equatable, Sendable {
  package enum Scheme: String, Sendable, CaseIterable {
    case sftp, dav, davs, nfs, smb, gluster
    /// One of the remotes that the user has configured for rclone: `rclone:REMOTE:PATH`.
    case rclone
  }

  package let scheme: Scheme
  package let user: String?
  /// Of rclone the name of the remote.
  package let host: String
  package let port: UInt16?
  /// Without percent signs; it begins with a slash, but for rclone.
  package let path: String

  /// Whether a text is meant to be one.
  package static func looksLikeOne(_ text: String) -> Bool {
    text.hasPrefix("rclone:") || schemeEnd(of: text) != nil
  }

  /// Where the slashes after the scheme are.
  private static func schemeEnd(of text: String) -> String.Index? {
    guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), text[colon...].begins(with: "://") else {
      return nil
    }
    return colon
  }

  /// Nil for what is none, or none that we know of.
  package init?(_ text: String) {
    if text.hasPrefix("rclone:") {
      let rest = text.dropFirst("rclone:".count)
      guard let colon = rest.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
      let path = String(rest[rest.utf8.index(after: colon)...])
      self.init(.rclone, user: nil, host: String(rest[..<colon]), port: nil, path: path)
      return
    }
    guard let end = Self.schemeEnd(of: text), let scheme = Scheme(rawValue: String(text[..<end])),
      scheme != .rclone
    else { return nil }
    let rest = text[end...].dropFirst("://".count)
    let slash = rest.utf8.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
    guard let path = Self.decoded(rest[slash...]) else { return nil }
    var authority = rest[..<slash]
    var user: String?
    if let at = authority.utf8.lastIndex(of: UInt8(ascii: "@")) {
      guard let name = Self.decoded(authority[..<at]) else { return nil }
      user = name
      authority = authority[authority.utf8.index(after: at)...]
    }
    var port: UInt16?
    let isBracketed = authority.hasPrefix("[")
    if let colon = authority.utf8.lastIndex(of: UInt8(ascii: ":")),
      !isBracketed || authority[..<colon].hasSuffix("]")
    {
      guard let number = UInt16(authority[authority.utf8.index(after: colon)...]), number > 0 else {
        return nil
      }
      port = number
      authority = authority[..<colon]
    }
    if isBracketed {
      guard authority.hasSuffix("]") else { return nil }
      authority = authority.dropFirst().dropLast()
    }
    self.init(scheme, user: user, host: String(authority), port: port, path: path.isEmpty ? "/" : path)
  }

  private init?(_ scheme: Scheme, user: String?, host: String, port: UInt16?, path: String) {
    let hostSigns = scheme == .rclone ? Self.isRemoteSign : Self.isHostSign
    guard Self.isPlain(host, hostSigns), user.map({ Self.isPlain($0, Self.isUserSign) }) ?? true,
      path.utf8.count < 3000, !path.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f })
    else { return nil }
    (self.scheme, self.user, self.host, self.port, self.path) = (scheme, user, host, port, path)
  }

  /// Whether a text has such characters alone, and does not look like an option.
  private static func isPlain(_ text: String, _ isAllowed: (UInt8) -> Bool) -> Bool {
    !text.isEmpty && text.utf8.count <= 255 && text.utf8.first != UInt8(ascii: "-")
      && text.utf8.allSatisfy(isAllowed)
  }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
      || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
      || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }
  private static func isHostSign(_ byte: UInt8) -> Bool {
    isLetterOrDigit(byte) || ".-_:".utf8.contains(byte)
  }
  private static func isUserSign(_ byte: UInt8) -> Bool {
    isLetterOrDigit(byte) || ".-_+@".utf8.contains(byte)
  }
  private static func isRemoteSign(_ byte: UInt8) -> Bool {
    isLetterOrDigit(byte) || ".-_+".utf8.contains(byte)
  }

  private static func decoded(_ text: Substring) -> String? {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      let digits = rest.prefix(2)
      guard digits.count == 2, let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16) else {
        return nil
      }
      rest = rest.dropFirst(2)
      bytes.append(value)
    }
    return String(validating: bytes, as: UTF8.self)
  }

  /// The address in the form that is kept and shown.
  package var text: String {
    if scheme == .rclone { return "rclone:\(host):\(path)" }
    let host = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
    return "\(scheme.rawValue)://\(user.map { Self.encoded($0) + "@" } ?? "")\(host)"
      + (port.map { ":\($0)" } ?? "") + Self.encoded(path)
  }

  private static func encoded(_ text: String) -> String {
    String(
      decoding: text.utf8.flatMap { byte -> [UInt8] in
        if isLetterOrDigit(byte) || "/._-~+:".utf8.contains(byte) { return [byte] }
        let digits = String(byte, radix: 16, uppercase: true)
        return Array("%\(digits.utf8.count == 1 ? "0" : "")\(digits)".utf8)
      }, as: UTF8.self)
  }

  /// What a volume of it is called if nobody says otherwise.
  package var name: String {
    let last = path.parts(between: "/").last.map(String.init) ?? ""
    return last.isEmpty || last == "." || last == ".." ? host : last
  }

  /// Whether programs serve it; else the kernel does.
  package var isByProgram: Bool { scheme != .nfs && scheme != .smb }
}

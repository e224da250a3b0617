// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import LinuxIO
internal import Policy
internal import Store

extension AppContainer {
  /// Puts a copy of a file, or of a package of files, into the app's Inbox, and gives the name that it has there.
  ///
  /// Always a copy: whoever has the original open has nothing of what is delivered. Where its name is taken, it gets a number.
  package func deliver(_ source: FD, _ name: [UInt8]) throws(DataFailure) -> String {
    let workshop = self.workshop("deliver")
    try clear(workshop)
    let inbox = try openInbox(workshop)
    var rules = DataCopy.Rules(from: .package, to: access)
    rules.owner = owner
    rules.emptiness = .refused
    rules.keepsSecurity = false
    let copy = DataCopy(rules)
    let temporary = workshop.newName()
    do throws(TreeCopyFailure) {
      try copy.copy(name, from: source, to: Array(temporary.utf8), in: containers.fd)
      try copy.finish()
    } catch {
      discard(temporary)
      throw .notCopied(from: String(decoding: name, as: UTF8.self), error)
    }
    do throws(DataFailure) {
      try synchronize()
      return try explaining("deliver to", "\(path)/\(ContainerLayout.inboxPath)") { () throws(Errno) in
        try place(temporary, as: name, in: inbox.fd)
      }
    } catch {
      discard(temporary)
      throw error
    }
  }

  private func place(_ temporary: String, as name: [UInt8], in inbox: FD) throws(Errno) -> String {
    var number = 1
    while true {
      let candidate = number == 1 ? name : Self.numbered(name, number)
      do throws(Errno) {
        try containers.fd.rename(temporary, to: inbox, candidate, flags: UInt32(CLX_RENAME_NOREPLACE))
        try inbox.synchronize(dataOnly: false)
        return String(decoding: candidate, as: UTF8.self)
      } catch .EEXIST {
        guard number < 100_000 else { throw .EEXIST }
        number += 1
      }
    }
  }

  /// `name-2.ext`; the name is cut where it would be too long.
  static func numbered(_ name: [UInt8], _ number: Int) -> [UInt8] {
    let suffix = Array("-\(number)".utf8)
    let dot = name.lastIndex(of: UInt8(ascii: ".")).flatMap { $0 > 0 ? $0 : nil } ?? name.count
    let ending = Array(name[dot...].prefix(64))
    var stem = Array(name[..<dot])
    while stem.count + suffix.count + ending.count > 255, !stem.isEmpty {
      // Whole characters only.
      while let last = stem.popLast(), last & 0xc0 == 0x80 {}
    }
    return stem + suffix + ending
  }

  private func openInbox(_ workshop: Workshop) throws(DataFailure) -> OwnedFD {
    let place = "\(path)/\(ContainerLayout.inboxPath)"
    return try explaining("open", place) { () throws(Errno) in
      let documents = try data.fd.openDirectory("Documents")
      do throws(Errno) {
        return try documents.fd.openDirectory("Inbox")
      } catch .ENOENT {
        do throws(Errno) {
          try workshop.put("Inbox", in: documents.fd) { (workshop, name) throws(Errno) in
            try makeDirectory(name.text, in: workshop)
          }
        } catch .EEXIST {
          // Someone has just made it.
        }
        return try documents.fd.openDirectory("Inbox")
      }
    }
  }
}

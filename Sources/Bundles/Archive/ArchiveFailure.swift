// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO

/// Why a bundle can't be taken out of an archive, or put into one.
package struct ArchiveFailure: Error, Equatable {
  package enum Reason: Equatable, Sendable {
    // The archive as such.
    /// What it is instead, if that can be told.
    case notTar(String)
    case empty
    case truncated
    case damaged(String)
    case trailing
    // Its entries.
    case absolutePath
    case dots
    case badName(String)
    case twice
    case noDirectory
    case severalBundles(String)
    case topIsNoDirectory
    case hardLink
    case device
    case fifo
    case unknownType(UInt8)
    case setID
    case linkLeadsOut(String)
    // What bounds them.
    case tooDeep(Int)
    case tooMany(Int)
    case tooLarge(Int64)
    // What came in between.
    case changed
    case failed(doing: String, Errno)
  }

  /// The entry that it is about; empty for the archive.
  package let path: String
  package let reason: Reason

  package init(_ reason: Reason, _ path: String = "") {
    self.path = path
    self.reason = reason
  }

  init(_ reason: Reason, _ path: [UInt8]) { self.init(reason, String(decoding: path, as: UTF8.self)) }
}

extension ArchiveFailure: CustomStringConvertible {
  package var description: String {
    let name = path.isEmpty ? "it" : "'\(path)'"
    return switch reason {
    case .notTar(let what): "it is not a tar archive\(what)"
    case .empty: "there is nothing in it"
    case .truncated: "it is cut short"
    case .damaged(let what): path.isEmpty ? what : "\(what), at or after \(name)"
    case .trailing: "something follows after its end"
    case .absolutePath: "the path of \(name) is absolute"
    case .dots: "the path of \(name) has '.', '..' or an empty name in it"
    case .badName(let why): "the name of \(name) can't be used: \(why)"
    case .twice: "\(name) is in it twice"
    case .noDirectory: "\(name) comes before the directory that it is in, or that is no directory"
    case .severalBundles(let other): "\(name) is not in the bundle '\(other)'; an archive has one bundle"
    case .topIsNoDirectory: "\(name) is not a directory; an archive has one bundle and nothing beside it"
    case .hardLink: "\(name) is a hard link; archives of bundles have none ('tar --hard-dereference')"
    case .device: "\(name) is a device"
    case .fifo: "\(name) is a fifo"
    case .unknownType(let type):
      "\(name) is of the type '\(String(UnicodeScalar(type)))', which bundles don't have"
    case .setID: "\(name) is to run with the rights of its owner or group (setuid, setgid)"
    case .linkLeadsOut(let target): "\(name) is a symbolic link that leads out of the bundle, to '\(target)'"
    case .tooDeep(let limit): "\(name) is more than \(limit) directories deep"
    case .tooMany(let limit): "there are more than \(limit) files, directories and links in it"
    case .tooLarge(let limit): "with \(name) it has more than \(limit) bytes"
    case .changed: "\(name) was changed while it was read"
    case .failed(let doing, let errno): "can't \(doing) \(path.isEmpty ? "it" : name): \(errno.message)"
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// How recent the last index was that was seen of each source: so that a server can't go back to one that
/// lacks what was mended since.
///
/// Where the store can be opened, its state has them, otherwise the caller's own directory.
struct SeenIndexes: ~Copyable {
  private let directory: OwnedFD
  private let file: String

  init(_ source: PackageSource, of signer: Signer, _ access: any StoreAccess) throws {
    try self.init(of: source.name, by: signer, access)
  }

  /// `source` is a name of the caller's.
  init(of source: String, by signer: Signer, _ access: any StoreAccess) throws {
    let root = signer.chain.last?.fingerprintText ?? ""
    let name = "\(source)\n\(signer.team)\n\(root)\n"
    var digest = try Digest(.sha256)
    Array(name.utf8).withUnsafeBytes { digest.update($0) }
    let opened = try Self.place(access)
    file = digest.finish().asHexadecimal
    directory = opened
  }

  private static func place(_ access: any StoreAccess) throws -> OwnedFD {
    do {
      return try access.openedStore().state.openDirectory("sources", makingWith: 0o700)
    } catch {
      return try access.context.makeSources()
    }
  }

  /// Throws if an index is older than one that was seen before.
  func check(_ index: PackageIndex, of source: PackageSource) throws {
    guard let last = try last(), index.issued < last else { return }
    throw CommandFailure(
      .failed,
      "the index of \(source.name.sanitized) is of \(utcText(index.issued)), and one of \(utcText(last)) was "
        + "seen before; nothing was changed; whoever keeps it should make it again with 'insula index'")
  }

  /// Whether none was seen that is more recent.
  func isRecent(_ index: PackageIndex) throws -> Bool { try last().map { index.issued >= $0 } ?? true }

  /// Remembers an index.
  func note(_ index: PackageIndex) throws {
    if let last = try last(), last >= index.issued { return }
    try directory.fd.replaceContents(of: file, with: Array("\(index.issued)\n".utf8), mode: 0o600)
  }

  private func last() throws -> Int64? {
    do throws(Errno) {
      let text = String(decoding: try directory.fd.contents(of: file, limit: 64), as: UTF8.self)
      return Int64(text.parts(between: "\n").first ?? "")
    } catch .ENOENT {
      return nil
    } catch {
      let why = error == .EINVAL ? "it is not a regular file" : error.message
      throw CommandFailure(
        error,
        "can't read which index was seen last, in sources/\(file): \(why); check it, and remove it")
    }
  }
}

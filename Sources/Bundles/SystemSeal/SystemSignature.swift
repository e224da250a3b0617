// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
internal import PropertyLists

/// The seal of a tree and the signature of it, as they lie in the tree.
package struct SystemSignature: Sendable {
  package let seal: SystemSeal
  /// The seal's own bytes, which are signed.
  package let bytes: [UInt8]
  package let signature: [UInt8]
  /// What stands for the whole tree.
  package let rootHash: [UInt8]

  /// Why there is none, or none that counts.
  package enum Failure: Error, Equatable, Sendable, CustomStringConvertible {
    case unsigned
    case malformed(MalformedSystemSeal)
    case unexpected(String)
    case signer(Finding)
    case otherTeam(seal: String, signer: String)
    case crypto(String)
    case failed(doing: String, Errno)

    package var description: String {
      switch self {
      case .unsigned: "it is not signed; 'insula system sign' signs it"
      case .malformed(let malformed): "its seal can't be read: \(malformed.reason)"
      case .unexpected(let name):
        "\(SystemSeal.directoryName) contains '\(name)', which is not part of a signature"
      case .signer(let finding):
        finding.kind.sentence + (finding.detail.isEmpty ? "" : ": \(finding.detail)")
      case .otherTeam(let seal, let signer):
        "its seal names the team '\(seal)', but it is signed by the team '\(signer)'"
      case .crypto(let words): words
      case .failed(let doing, let errno): "can't \(doing) its signature: \(errno.message)"
      }
    }
  }

  /// Reads what lies in a tree; nobody has verified it then.
  package init(in top: FD) throws(Failure) {
    var unexpected: [String] = []
    do throws(Errno) {
      let directory = try top.openDirectory(SystemSeal.directoryName)
      let names = try directory.fd.entries().map { String(decoding: $0.name, as: UTF8.self) }
      unexpected = names.filter { ![SystemSeal.sealName, SystemSeal.signatureName].contains($0) }
      bytes = try directory.fd.contents(of: SystemSeal.sealName, limit: SystemSeal.maximumSize + 1)
      signature = try directory.fd.contents(
        of: SystemSeal.signatureName, limit: Trust.maximumSignatureSize + 1)
    } catch {
      throw error == .ENOENT ? .unsigned : .failed(doing: "read", error)
    }
    if let unexpected = unexpected.min() { throw .unexpected(unexpected) }
    do throws(MalformedSystemSeal) { seal = try SystemSeal(reading: bytes) } catch { throw .malformed(error) }
    do throws(CryptoFailure) { rootHash = try SystemSeal.rootHash(of: bytes) } catch {
      throw .crypto(error.description)
    }
  }

  /// Finds out who has signed it.
  package func verify(_ trust: Trust, at time: Int64) throws(Failure) -> Signer {
    let signer: Signer
    do throws(Finding) {
      signer = try trust.signer(of: bytes, by: signature, at: time)
    } catch {
      throw .signer(error)
    }
    guard signer.team.hasSameBytes(as: seal.team) else {
      throw .otherTeam(seal: seal.team, signer: signer.team)
    }
    return signer
  }

  /// Signs a seal, and puts both into its tree in one step.
  package static func write(
    _ seal: SystemSeal, by identity: borrowing Identity, in top: FD
  ) throws(Failure) {
    let bytes = seal.bytes
    let signature: [UInt8]
    do throws(CryptoFailure) { signature = try identity.signature(of: bytes) } catch {
      throw .crypto(error.description)
    }
    do throws(Errno) {
      try replace([(SystemSeal.sealName, bytes), (SystemSeal.signatureName, signature)], in: top)
    } catch {
      throw .failed(doing: "write", error)
    }
  }

  /// Where a signature is written before it takes its place.
  private static let unfinished = ".CodeSignature.new"

  /// Removes what is left of a signing that was stopped, which would be sealed otherwise.
  package static func removeUnfinished(in top: FD) {
    try? top.removeLeft(unfinished, with: [SystemSeal.sealName, SystemSeal.signatureName])
  }

  private static func replace(_ files: [(name: String, bytes: [UInt8])], in top: FD) throws(Errno) {
    removeUnfinished(in: top)
    try top.makeDirectory(unfinished, mode: 0o755)
    let directory = try top.openDirectory(unfinished)
    let old = top.held(SystemSeal.directoryName)
    try directory.fd.changeMode(0o755)
    for file in files {
      try file.name.withName { (name) throws(Errno) in
        let made = try directory.fd.open(name, O_WRONLY | O_CREAT | O_EXCL, mode: 0o644)
        try made.fd.changeMode(0o644)
        try made.fd.writeAll(file.bytes)
        try made.fd.synchronize(dataOnly: false)
      }
    }
    try directory.fd.synchronize(dataOnly: false)
    do throws(Errno) {
      try top.rename(unfinished, to: top, SystemSeal.directoryName, flags: 0)
    } catch .ENOTEMPTY, .EEXIST, .ENOTDIR {
      // What was there has the other name then.
      try top.rename(unfinished, to: top, SystemSeal.directoryName, flags: UInt32(CLX_RENAME_EXCHANGE))
      try top.remove(held: old, named: unfinished)
    }
    try top.synchronize(dataOnly: false)
  }
}

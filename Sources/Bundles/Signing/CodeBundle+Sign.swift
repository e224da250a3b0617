// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO
internal import PropertyLists

/// Why a bundle was not signed.
package enum SigningFailure: Error, Equatable, Sendable {
  /// What is in the way; never empty.
  case refused([Finding])
  /// The identity's certificates are not valid now, so nobody would accept the signature.
  case notValidNow(identity: String, certificate: String, until: Int64)
  case crypto(String)
  case notWritten(path: String, errno: Errno)
}

extension SigningFailure: CustomStringConvertible {
  package var description: String {
    switch self {
    case .refused(let findings): findings.map(\.message).joined(separator: "\n")
    case .notValidNow(let identity, let certificate, let until):
      "the identity '\(identity)' can't sign now: the certificate '\(certificate)' is valid until "
        + "\(calendarDay(until)); create a new one with 'insula identity new'"
    case .crypto(let reason): reason
    case .notWritten(let path, let errno): "can't write \(path): \(errno.message)"
    }
  }
}

extension CodeBundle {
  /// Signs this bundle, and before it those that are in it; what was signed before is signed again.
  ///
  /// `entitlements` is a property list, kept byte for byte; bundles inside keep those they have. `time` is
  /// now, in seconds since 1970. Returns what the seal of a bundle around this one says of it. The new
  /// signature takes the old one's place in one step, after all of it is on disk.
  @discardableResult
  package func sign(
    as identity: borrowing Identity, entitlements: [UInt8]?, at time: Int64
  ) throws(SigningFailure) -> NestedSeal {
    for certificate in identity.chain where !certificate.isValid(at: time) {
      throw .notValidNow(
        identity: identity.name, certificate: certificate.name, until: certificate.validUntil)
    }
    try writing(Self.unfinished) { () throws(Errno) in
      try base.removeLeft(Self.unfinished, with: SealLayout.parts)
    }
    // The seal's closure throws findings; whatever else goes wrong inside waits here.
    var failure: SigningFailure?
    let sealed: ResourceSeal
    do throws(SealRefusal) {
      sealed = try seal { (bundle) throws(Finding) in
        do throws(SigningFailure) {
          let kept = try bundle.finding { () throws(Finding) in
            try bundle.signaturePart(SealLayout.codeEntitlements)
          }
          return try bundle.sign(as: identity, entitlements: kept, at: time)
        } catch {
          if case .refused(let findings) = error, let first = findings.first { throw first }
          failure = error
          throw Finding(.nestedUnsigned)
        }
      }
    } catch {
      throw failure ?? .refused(error.findings)
    }
    let contents = try contents(sealed, entitlements, identity)
    try writing { () throws(Errno) in try replaceSignature(with: contents.files) }
    return contents.seal
  }

  /// The files of the signature, and what is to be said of them outside.
  private func contents(
    _ sealed: ResourceSeal, _ entitlements: [UInt8]?, _ identity: borrowing Identity
  ) throws(SigningFailure) -> (files: [(name: String, bytes: [UInt8])], seal: NestedSeal) {
    let resources: [UInt8]
    do throws(PropertyListError) { resources = try sealed.codeResources() } catch {
      throw .refused([Finding(.malformedCodeResources, detail: error.description)])
    }
    let parts = try finding { () throws(Finding) in
      if let entitlements { _ = try Self.entitlements(entitlements) }
      let parts = try SealedParts(of: self, codeResources: resources, entitlements: entitlements)
      guard parts.executableSize <= CodeDirectory.maximumExecutableSize else {
        throw fromRoot(Finding(.badExecutable, executablePath, detail: "it is larger than 7 GiB"))
      }
      return parts
    }
    let directory = CodeDirectory(parts, team: identity.team).bytes
    let cdhash: [UInt8]
    let signature: [UInt8]
    do throws(CryptoFailure) {
      cdhash = try CodeDirectory.cdhash(of: directory)
      signature = try identity.signature(of: directory)
    } catch {
      throw .crypto(error.description)
    }
    var files = [
      (name: SealLayout.codeResources, bytes: resources), (name: SealLayout.codeDirectory, bytes: directory),
      (name: SealLayout.codeSignature, bytes: signature),
    ]
    if let entitlements { files.append((name: SealLayout.codeEntitlements, bytes: entitlements)) }
    let requirement = Requirement(identifier: parts.identifier, team: identity.team)
    return (files, NestedSeal(cdhash: cdhash, requirement: requirement.description))
  }

  private func finding<Result>(_ body: () throws(Finding) -> Result) throws(SigningFailure) -> Result {
    do throws(Finding) { return try body() } catch { throw .refused([error]) }
  }

  private func writing(
    _ place: String = SealLayout.signatureDirectory, _ body: () throws(Errno) -> Void
  ) throws(SigningFailure) {
    do throws(Errno) { try body() } catch {
      throw .notWritten(path: "\(name)/\(fromRoot(Finding(.unsigned, place)).path)", errno: error)
    }
  }
}

// Files.
extension CodeBundle {
  /// Where a signature is written before it takes its place.
  ///
  /// One that stays behind, because signing was stopped, is found by whoever verifies and removed by who
  /// signs next.
  private static let unfinished = ".CodeSignature.new"

  private func replaceSignature(with files: [(name: String, bytes: [UInt8])]) throws(Errno) {
    let new = Self.unfinished
    try base.makeDirectory(new, mode: 0o755)
    let directory = try base.openDirectory(new)
    let old = base.held(SealLayout.signatureDirectory)
    do throws(Errno) {
      for file in files {
        try file.name.withName { (name) throws(Errno) in
          let made = try directory.fd.open(name, O_WRONLY | O_CREAT | O_EXCL, mode: 0o644)
          try made.fd.writeAll(file.bytes)
          try made.fd.synchronize(dataOnly: false)
        }
      }
      try directory.fd.synchronize(dataOnly: false)
      try new.withName { (new) throws(Errno) in
        try SealLayout.signatureDirectory.withName { (old) throws(Errno) in try exchange(new, old) }
      }
    } catch {
      try? base.remove(held: directory.fd, named: new)
      throw error
    }
    try base.synchronize(dataOnly: false)
    // What had the name before has the other one now.
    try base.remove(held: old, named: new)
    try base.synchronize(dataOnly: false)
  }

  /// Gives the new signature the old one's name; the old one, if there is one, then has the new one's.
  private func exchange(_ new: Name, _ old: Name) throws(Errno) {
    do throws(Errno) {
      try base.rename(new, to: base, old, flags: 0)
      return
    } catch {
      // Only an empty directory or none can be replaced so.
      guard error == .ENOTEMPTY || error == .EEXIST || error == .ENOTDIR else { throw error }
    }
    // Corresponds to `RENAME_EXCHANGE`.
    let exchanging: UInt32 = 2
    try base.rename(new, to: base, old, flags: exchanging)
  }
}

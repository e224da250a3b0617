// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

extension SealedParts {
  /// What a bundle's parts are now, for comparison with what was signed.
  package init(of bundle: CodeBundle) throws(Finding) {
    try self.init(
      of: bundle, codeResources: bundle.signaturePart(SealLayout.codeResources),
      entitlements: bundle.signaturePart(SealLayout.codeEntitlements))
  }

  /// What is to be signed, or what was already read: the same bytes that are looked into must be those that are sealed.
  package init(of bundle: CodeBundle, codeResources: [UInt8]?, entitlements: [UInt8]?) throws(Finding) {
    let (size, pages) = try Self.pages(of: bundle)
    try self.init(
      identifier: bundle.info.identifier, version: bundle.info.version,
      infoPlistDigest: Digest.sha256(of: bundle.infoPlist), codeResourcesDigest: Self.digest(codeResources),
      entitlementsDigest: Self.digest(entitlements), executableSize: size, executablePageDigests: pages)
  }

  /// All but the executable, which takes as long as it is.
  init(ofAllButExecutable bundle: CodeBundle) throws(Finding) {
    try self.init(
      identifier: bundle.info.identifier, version: bundle.info.version,
      infoPlistDigest: Digest.sha256(of: bundle.infoPlist),
      codeResourcesDigest: Self.digest(bundle.signaturePart(SealLayout.codeResources)),
      entitlementsDigest: Self.digest(bundle.signaturePart(SealLayout.codeEntitlements)), executableSize: 0,
      executablePageDigests: [])
  }

  private static func digest(_ bytes: [UInt8]?) throws(Finding) -> [UInt8]? {
    guard let bytes else { return nil }
    return try Digest.sha256(of: bytes)
  }

  private static func pages(of bundle: CodeBundle) throws(Finding) -> (size: UInt64, digests: [UInt8]) {
    guard let file = try bundle.openExecutable() else { return (0, []) }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 * pageSize, alignment: pageSize)
    defer { buffer.deallocate() }
    file.fd.willBeReadOnce()
    bundle.progress?.addFile()
    var digests: PageDigests
    do throws(CryptoFailure) { digests = try PageDigests() } catch { throw finding(error, bundle) }
    var size: UInt64 = 0
    while true {
      let filled = try Self.fill(buffer, from: file.fd, at: size, bundle)
      for start in stride(from: 0, to: filled, by: pageSize) {
        let page = UnsafeRawBufferPointer(rebasing: buffer[start..<min(start + pageSize, filled)])
        do throws(CryptoFailure) { try digests.append(page) } catch { throw finding(error, bundle) }
      }
      size += UInt64(filled)
      bundle.progress?.add(bytes: filled)
      if filled < buffer.count { return (size, digests.bytes) }
    }
  }

  private static func finding(_ failure: CryptoFailure, _ bundle: CodeBundle) -> Finding {
    bundle.fromRoot(Finding(.unreadable, bundle.executablePath, detail: "SHA-256: \(failure.reason)"))
  }

  /// Reads until the buffer is full or the file at its end, so that pages end where pages of the file end.
  private static func fill(
    _ buffer: UnsafeMutableRawBufferPointer, from file: FD, at offset: UInt64, _ bundle: CodeBundle
  ) throws(Finding) -> Int {
    var filled = 0
    do throws(Errno) {
      while filled < buffer.count {
        let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
        let count = try file.read(into: rest, at: Int64(offset) + Int64(filled))
        if count == 0 { break }
        filled += count
      }
    } catch {
      throw bundle.fromRoot(Finding(.unreadable, bundle.executablePath, error))
    }
    return filled
  }
}

extension Digest {
  /// SHA-256 of bytes that are all there.
  static func sha256(of bytes: [UInt8]) throws(Finding) -> [UInt8] {
    do throws(CryptoFailure) {
      var digest = try Digest(.sha256)
      bytes.withUnsafeBytes { digest.update($0) }
      return digest.finish()
    } catch {
      throw Finding(.unreadable, detail: "SHA-256: \(error.reason)")
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import PropertyLists

extension CodeBundle {
  /// Looks at all that a launch depends on: that the signature is the one that is known by its digest, and
  /// that the executable, Info.plist and the entitlements are those that were signed; gives the entitlements.
  ///
  /// Every other file is looked at when it is opened. Neither certificates nor the time count.
  package func checkForLaunch(seal installed: [UInt8]) throws(Finding) -> PropertyList.Dictionary {
    guard try sealDigest() == installed else { throw Finding(.signatureMismatch) }
    guard let content = try signaturePart(SealLayout.codeDirectory) else { throw Finding(.unsigned) }
    let directory: CodeDirectory
    do throws(MalformedCodeDirectory) {
      directory = try CodeDirectory(content)
    } catch {
      throw Finding(.malformedCodeDirectory, detail: error.reason)
    }
    let entitlements = try signaturePart(SealLayout.codeEntitlements)
    let parts = try SealedParts(
      of: self, codeResources: signaturePart(SealLayout.codeResources), entitlements: entitlements)
    if let finding = directory.differences(from: parts).first { throw fromRoot(located(finding)) }
    return try entitlements.map { (bytes) throws(Finding) in try Self.entitlements(bytes) } ?? .init()
  }

  /// The files that ``checkForLaunch(seal:)`` has read, from the bundle's directory on.
  package var pathsForLaunch: [String] {
    let prefix = shape == .contents ? "Contents/" : ""
    let parts = SealLayout.parts.map { "\(SealLayout.signatureDirectory)/\($0)" }
    return (["Info.plist", executablePath] + parts).map { prefix + $0 }
  }

  /// The main executable, from the bundle's directory on.
  package var executableFromRoot: String {
    shape == .contents ? "Contents/\(executablePath)" : executablePath
  }
}

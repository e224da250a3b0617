// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Bundles
internal import CLinux
package import LinuxIO
internal import PropertyLists

extension SystemDomain {
  /// Signs a tree, open for reading, so that it can become a system domain; of the standard directories those
  /// that are missing are made.
  ///
  /// Without a version it is what `Library/CoreServices/SystemVersion.plist` says.
  package static func sign(
    _ tree: FD, named path: String, by identity: borrowing Identity, version: String?, keepingOwners: Bool,
    progress: @escaping (Int64) -> Void = { _ in }
  ) throws(SystemFailure) -> SystemSignature {
    SystemSignature.removeUnfinished(in: tree)
    try SystemSkeleton.complete(tree)
    let seal: SystemSeal
    do throws(SystemSealFailure) {
      seal = try SystemSeal(
        of: tree, version: version ?? productVersion(in: tree), team: identity.team,
        keepingOwners: keepingOwners, progress: progress)
    } catch {
      throw .notSealable(path: path, error)
    }
    try SystemSkeleton.check(seal, path)
    do throws(SystemSignature.Failure) {
      try SystemSignature.write(seal, by: identity, in: tree)
      return try SystemSignature(in: tree)
    } catch {
      throw .notSigned(path: path, error)
    }
  }

  /// All that is wrong with a tree that is to become a system domain; who has signed it, if that is known.
  package static func judge(
    _ tree: FD, _ trust: Trust, at time: Int64, progress: @escaping (Int64) -> Void = { _ in }
  ) throws(SystemSealFailure) -> (signer: Signer?, signature: SystemSignature?, problems: [String]) {
    var problems: [String] = []
    let signature: SystemSignature
    do throws(SystemSignature.Failure) {
      signature = try SystemSignature(in: tree)
    } catch {
      return (nil, nil, [error.description])
    }
    var signer: Signer?
    do throws(SystemSignature.Failure) { signer = try signature.verify(trust, at: time) } catch {
      problems.append(error.description)
    }
    do throws(SystemFailure) { try SystemSkeleton.check(signature.seal, "its seal") } catch {
      problems.append(error.description)
    }
    problems += try signature.seal.findings(in: tree, .notYet, progress: progress).map(\.description)
    return (signer, signature, problems)
  }

  private static func productVersion(in tree: FD) -> String {
    let bytes = try? tree.withParent(of: "Library/CoreServices/SystemVersion.plist") {
      (services, name) throws(Errno) in try services.contents(of: name, limit: 1 << 20)
    }
    guard let bytes, let list = try? PropertyList(reading: bytes) else { return "" }
    return list.dictionary?["ProductVersion"]?.string ?? ""
  }
}

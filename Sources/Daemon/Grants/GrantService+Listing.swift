// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
package import Policy
internal import Store
internal import Volume

// What was granted, for users and for apps.

extension GrantService {
  /// What was granted to an app or to all, of a user or of all, in the order in which it was granted; a part
  /// of it, which begins after the grant of that number, and the number to go on with, if there is more.
  package func list(
    _ identifier: AppIdentifier?, of user: UInt32?, after number: Int64 = 0,
    for caller: CallerIdentity = .ourselves
  ) -> GrantPage {
    if number == 0 { unloaded.wait(for: user) }
    return page(of: numbers(of: identifier, user, after: number, limit: Self.mostInAnswer + 1)) { records in
      let known = known(records, by: caller)
      // Whether it is there is not told either.
      let told = records.indices.filter { known[$0].isAll(of: records[$0]) }
      let areThere = volume.areThere(told.map { records[$0] })
      let there = Set(zip(told, areThere).filter { $0.1 }.map { $0.0 })
      return records.indices.map {
        GrantedPlace(records[$0], at: known[$0], isMissing: !there.contains($0))
      }
    }
  }

  /// What one app of a user was granted, for the app: nobody looks whether it is there, and what its user
  /// can't get to any more is left out.
  ///
  /// That takes a look at the disks where it is: not for a thread that others wait for.
  func own(
    _ app: InstalledApp, of user: UInt32, after number: Int64, _ group: UInt32? = nil,
    isMember: (_ gid: UInt32) -> Membership = { _ in .unknown }
  ) -> GrantPage {
    let caller = Credentials(uid: user, gid: group ?? .max)
    // What changes while this is read makes it another version, never the other way round.
    let version = version(app, of: user)
    let numbers = volume.grantNumbers(
      to: app.identifier, of: app.signer, user, after: number, limit: Self.mostInAnswer + 1)
    return page(of: numbers, version) { records in
      let known = volume.known(records.map(\.path), by: caller, isMember: isMember)
      return zip(records, known).filter { $1.isAll(of: $0) }.map {
        GrantedPlace($0.0, isMissing: false)
      }
    }
  }

  /// The numbers of what was granted, as in ``list(_:of:after:)``.
  func numbers(
    of identifier: AppIdentifier?, _ user: UInt32?, after number: Int64, limit: Int
  ) -> [Int64] {
    let text = identifier?.text.lowercased()
    return volume.grantNumbers(after: number, limit: limit) { other, holder in
      (user == nil || holder == user) && text.map { $0 == other.lowercased() } ?? true
    }
  }

  /// As much of these as one answer holds; of those that come after, the first is enough.
  ///
  /// No answer is longer than what a socket takes at once.
  private func page(
    of numbers: [Int64], _ version: String? = nil, _ places: ([GrantRecord]) -> [GrantedPlace]
  ) -> GrantPage {
    var records: [GrantRecord] = []
    var bytes = 0
    var last: Int64 = 0
    for (index, number) in numbers.enumerated() {
      guard index < Self.mostInAnswer, bytes < 32_768 else {
        return GrantPage(places: places(records), next: last, version: version)
      }
      last = number
      // It may have been taken back meanwhile.
      guard let record = volume.granted([number]).first else { continue }
      records.append(record)
      bytes += record.path.reduce(0) { $0 + $1.count }
    }
    return GrantPage(places: places(records), next: nil, version: version)
  }

  /// What all of that is known by.
  func version(_ app: InstalledApp, of user: UInt32) -> String {
    String(volume.grantsVersion(of: app.identifier, app.signer, user: user), radix: 16)
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store
internal import Volume

extension AppService {
  /// Assigns a team to a root.
  ///
  /// Apps that were signed in the team's name under another root have nothing of the team's from then on:
  /// when the answer is given, none of them has what was granted or allowed, and none runs. All of them lose
  /// it, and are ended, before one is waited for: its user may hold a file, or have a disk that does not
  /// answer.
  func assign(
    _ team: String, to root: [UInt8], by caller: CallerIdentity, _ handler: AppRequestHandler,
    _ tree: MountedTree
  ) -> ControlReply {
    do {
      let others = try handler.registry.apps().filter {
        $0.team.hasSameBytes(as: team) && $0.root != root
      }
      return try tree.views.keepingFromStarting(others.map(\.path)) {
        let before: [UInt8]?
        do throws(ControlFailure) {
          before = try handler.assign(team, to: root, by: caller)
        } catch {
          return .failure(error)
        }
        if let unsettled = try end(othersOf: team, root, tree) { return .failure(unsettled) }
        return .assigned(team: team, formerRoot: before)
      }
    } catch let error as StoreError {
      return .failure(ControlFailure(error))
    } catch {
      return .failure(ControlFailure("\(error)"))
    }
  }

  /// Gives what to say where an app may still be told what was found for it before.
  private func end(
    othersOf team: String, _ root: [UInt8], _ tree: MountedTree
  ) throws(StoreError) -> ControlFailure? {
    // Also those whose process has ended, and whose view is still there.
    let views = tree.views.all(ended: true).filter { $0.launch.app.team.hasSameBytes(as: team) }
    let others = views.filter { $0.launch.app.root != root }
    guard let services else {
      tree.endOfOtherRoots(others)
      return nil
    }
    var unsettled: ControlFailure?
    let late = try services.grants.teamIsAssigned(team) {
      unsettled = services.consents.teamIsAssigned(views) { tree.endOfOtherRoots(others) }
    }
    return late.isEmpty ? unsettled : Self.grantsAreHeld(team, late)
  }

  private static func grantsAreHeld(_ team: String, _ users: [UInt32]) -> ControlFailure {
    let users = users.map { "uid \($0)" }.inOrder(by: <).joined(separator: ", ")
    return ControlFailure(
      "the team \(team.sanitized) is assigned to that root, and apps under its other roots were ended; but "
        + "what those of \(users) were granted is not all taken back yet: a rename or a write of theirs "
        + "waits for a file that somebody holds, or for a disk that does not answer. It is taken back when "
        + "that ends; run this command again then to be sure", .EBUSY)
  }
}

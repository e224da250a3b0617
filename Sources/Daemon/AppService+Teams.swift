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
  /// when the answer is given, none of them has what was granted or allowed, and none runs.
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
    let services = services
    try services?.grants.teamIsAssigned(team)
    let unsettled = services?.consents.teamIsAssigned(views)
    tree.endOfOtherRoots(others)
    return unsettled
  }
}

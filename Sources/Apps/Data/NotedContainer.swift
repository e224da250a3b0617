// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store

/// The container of an app or a group in a home, as the registry has it, for an order of someone who may move
/// things in this home.
struct NotedContainer: ~Copyable {
  let record: ContainerRecord
  /// The directory that it is in, below the root of the tree, and open.
  let above: String
  let parent: OwnedFD
  var path: String { record.path }

  init(
    _ identifier: AppIdentifier, _ kind: ContainerKind = .data, home: String, _ store: Store,
    _ registry: Registry, doing: String, by caller: CallerIdentity
  ) throws(AppFailure) {
    let above = "Users/\(home)/\(ContainerLayout.directory(of: kind))"
    let path = "\(above)/\(ContainerLayout.name(of: identifier, kind))"
    guard Self.isName(home), (try? Homes.checkName(home)) != nil else {
      throw .failed(doing: doing, path: path, errno: .EINVAL)
    }
    let parent = try Self.opening("\(store.path)/tree/\(above)") { () throws(Errno) in
      try store.tree.openDirectory(at: above)
    }
    let owner = try Self.opening("\(store.path)/tree/\(above)") { () throws(Errno) in
      try parent.fd.status().st_uid
    }
    guard caller.uid == owner || caller.uid == 0 || caller.uid == ProcessID.user else {
      throw .notAllowed(doing: doing, path: "\(store.path)/tree/\(path)")
    }
    let noted: [ContainerRecord]
    do throws(StoreError) {
      noted = try registry.containers(
        kind: kind, identifier: identifier, user: owner, isMarkedForRemoval: false)
    } catch {
      throw .store(error)
    }
    guard let record = noted.first(where: { $0.path.hasSameBytes(as: path) }) else {
      throw .notInstalled(identifier: identifier.text, domain: "this home")
    }
    self.record = record
    self.above = above
    self.parent = parent
  }

  /// Throws if it is no more the container of the team that it was meant for: copying takes its time, and
  /// another team's app may have the identifier by now.
  ///
  /// For its user's turn, in which nobody removes or makes it.
  func require(_ team: BackupTeam?, _ registry: Registry) throws(StoreError) {
    let now = try registry.containers(
      kind: record.kind, identifier: record.identifier, user: record.user, isMarkedForRemoval: false)
    guard now.contains(where: { $0.uuid == record.uuid && $0.team == record.team }),
      team.flatMap({ team in record.team.map(team.isSame) }) ?? true
    else {
      throw .containerOfOther(path: path, identifier: record.identifier.text)
    }
  }

  private static func opening<Result: ~Copyable>(
    _ path: String, _ body: () throws(Errno) -> Result
  ) throws(AppFailure) -> Result {
    do throws(Errno) { return try body() } catch { throw .failed(doing: "open", path: path, errno: error) }
  }

  /// Whether a text is one name that something can have.
  static func isName(_ text: String) -> Bool {
    !text.utf8.contains(0) && !text.utf8.contains(UInt8(ascii: "/"))
      && !["", ".", ".."].contains(where: { $0.utf8.elementsEqual(text.utf8) })
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import JSON
internal import LinuxIO

// Whose team's a container is goes with the container where other stores may find it: theirs do not have our
// registry, and an app of that name by somebody else is to get nothing of it.

extension Metadata {
  private var teamName: StaticString { isSystem ? "trusted.insula.team" : "user.insula.team" }

  /// Nil where nothing sensible is noted.
  func team(of container: FD) -> Team? {
    let team = try? read(teamName, of: container) { bytes in
      bytes.flatMap { try? JSONText.decode(Team.self, from: Array($0)) }
    }
    return team.flatMap { $0 }
  }

  func setTeam(_ team: Team, of container: FD) throws(Errno) {
    guard let bytes = try? JSONText.encode(team) else { throw .EINVAL }
    try set(teamName, to: bytes, on: container)
  }
}

extension Containers {
  /// Throws if a container that is there is another team's, as is noted with it.
  func checkNotedTeam(of record: ContainerRecord, named name: String, in parent: FD, for team: Team)
    throws(StoreError)
  {
    guard let directory = try? parent.openDirectory(name), let noted = metadata.team(of: directory.fd),
      noted != team
    else { return }
    throw .containerOfOtherTeam(path: "\(path)/\(record.path)", team: team.words, other: noted.words)
  }

  func noteTeam(_ team: Team, of record: ContainerRecord, named name: String, in parent: FD)
    throws(StoreError)
  {
    try explaining("note the team of", "\(path)/\(record.path)") { () throws(Errno) in
      let directory = try parent.openDirectory(name)
      if metadata.team(of: directory.fd) != team { try metadata.setTeam(team, of: directory.fd) }
    }
  }
}

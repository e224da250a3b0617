// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Store

/// The daemons of all users, as root finds them.
///
/// Users have put into these places what they liked. So no link is followed, nobody is waited for, and who
/// answers must be the user whose place it is.
package struct EveryonesDaemons: Sendable {
  package private(set) var clients: [ControlClient] = []
  /// What should be one and does not answer, in words.
  package private(set) var silent: [String] = []
  /// The devices of the trees that are served, each with whom by.
  private var served: [String] = []
  private var waiting = 0

  private static let milliseconds = 5000
  /// How many daemons of one user are asked, besides root's: what more there are would take others' place.
  private static let maxOfUser = 32

  /// Where one user's daemons listen: under any name, or under one.
  private struct Place {
    let path: String
    let name: String?
    let user: UInt32
  }

  /// Asks all of them who they are.
  package init() {
    DaemonProcess.raiseDescriptorLimit()
    let trees = Self.trees
    let places = Self.directories + trees.map(\.place)
    let found = Condition(EveryonesDaemons(waitingFor: places.count))
    for place in places {
      // The way there may lead through a filesystem that does not answer.
      let thread = try? JoinableThread(name: "daemons") {
        let asked = EveryonesDaemons(in: place)
        found.change { found in
          found.clients += asked.clients
          found.silent += asked.silent
          found.served += asked.served
          found.waiting -= 1
        }
      }
      thread?.detach()
    }
    _ = found.wait(milliseconds: Self.milliseconds) { $0.waiting == 0 }
    self = found.withLock { $0 }
    if waiting > 0 { silent.append("the way to a daemon does not answer") }
    for (place, mount) in trees where !served.contains("\(mount.device) of \(place.user)") {
      silent.append("the daemon of \(mount.source), which is mounted at \(mount.mountPoint), does not answer")
    }
  }

  private init(waitingFor count: Int) { waiting = count }

  private init(in place: Place) {
    var asked: [(client: ControlClient, name: String)] = []
    do throws(Errno) {
      let directory = try FD.cwd.openWithoutLinks(place.path, O_RDONLY | O_DIRECTORY)
      var names = place.name.map { [$0] } ?? []
      if place.name == nil {
        names = try Self.sockets(in: directory.fd, of: place.user)
        if place.user != 0, names.count > Self.maxOfUser {
          names.removeLast()
          silent.append("\(place.path) has more than \(Self.maxOfUser) daemons; no more of them are asked")
        }
      }
      for name in names {
        do throws(Errno) {
          let client = try ControlClient(in: directory.fd, name: name, of: place.user)
          try client.send(.status)
          asked.append((client, name))
        } catch {
          note(error, "\(place.path)/\(name)")
        }
      }
    } catch {
      note(error, place.path)
    }
    // Before whoever waits for this gives up.
    let end = monotonicNanoseconds() + UInt64(Self.milliseconds) * 800_000
    for (client, name) in asked {
      do throws(Errno) {
        let left = Int32(clamping: millisecondsLeft(until: end) + 1)
        guard case .status(let status) = try client.awaitReply(milliseconds: left) else {
          throw .EIO
        }
        clients.append(client)
        if let device = status.mountDevice { served.append("\(device) of \(place.user)") }
      } catch {
        note(error, "\(place.path)/\(name)")
      }
    }
  }

  /// The names of sockets in a user's directory, at most one more than are asked.
  private static func sockets(in directory: FD, of user: UInt32) throws(Errno) -> [String] {
    var names: [String] = []
    _ = try directory.firstEntry { name, _ in
      let text = String(decoding: name.buffer, as: UTF8.self)
      if text.hasSuffix(ControlPlace.suffix) { names.append(text) }
      return user != 0 && names.count > maxOfUser
    }
    return names
  }

  /// Where nothing is, or nobody listens any more, there is no daemon.
  private mutating func note(_ error: Errno, _ path: String) {
    guard ![.ENOENT, .ECONNREFUSED].contains(error) else { return }
    silent.append("the daemon at \(path) does not answer: \(error.message)")
  }

  /// Those of root, and of all whose session has given them a place.
  private static var directories: [Place] {
    let users = (try? usersOfSessions()) ?? []
    return [Place(path: ControlPlace.systemDirectory, name: nil, user: 0)]
      + users.map { Place(path: "/run/user/\($0)/insula", name: nil, user: $0) }
  }

  private static func usersOfSessions() throws(Errno) -> [UInt32] {
    let directory = try FD.cwd.openWithoutLinks("/run/user", O_RDONLY | O_DIRECTORY)
    return try directory.fd.entries().compactMap { UInt32(String(decoding: $0.name, as: UTF8.self)) }
  }

  /// Trees that are mounted, with the place in the store where a daemon listens that has no other.
  private static var trees: [(place: Place, mount: MountEntry)] {
    var trees: [(place: Place, mount: MountEntry)] = []
    var counts: [UInt32: Int] = [:]
    for mount in (try? MountTable.current())?.entries ?? []
    where mount.isServed && mount.source.begins(with: "/") {
      guard let user = mount.server, user == 0 || counts[user, default: 0] < maxOfUser else { continue }
      counts[user, default: 0] += 1
      let place = Place(path: mount.source + "/state", name: ControlPlace.nameInStore, user: user)
      trees.append((place, mount))
    }
    return trees
  }
}

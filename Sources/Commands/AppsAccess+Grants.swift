// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import CLinux
internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

// The way to what apps are granted.

extension AppsAccess {
  /// Where in the tree something is that a person has named, and its number.
  ///
  /// What a link leads to is what is meant.
  func place(of path: String, _ context: Context) throws -> (path: String, inode: UInt64) {
    let status: FileStatus
    let full = context.absolute(path)
    do throws(Errno) {
      let object = try FD.cwd.openFollowing(full, CLX_O_PATH)
      status = try object.fd.status()
    } catch {
      throw CommandFailure(error, "can't find \(path.harmless): \(error.message)")
    }
    return (try below(full, named: path, context), UInt64(status.st_ino))
  }

  /// Where in the tree something was that may have gone meanwhile.
  func formerPlace(of path: String, _ context: Context) throws -> String {
    try below(context.absolute(path).withoutDots, named: path, context)
  }

  /// A path below the root of the tree.
  private func below(_ full: String, named: String, _ context: Context) throws -> String {
    let root = context.absolute(root)
    guard full.utf8.starts(with: (root + "/").utf8) else {
      throw CommandFailure(
        .failed,
        full == root
          ? "\(named.harmless) is the whole tree; grant the folders in it that are meant"
          : "\(named.harmless) is not in the tree at \(root); only what is in it can be granted")
    }
    return String(full.dropFirst(root.count + 1))
  }

  /// Has an order carried out.
  func perform(_ order: GrantOrder) throws -> [GrantedPlace] {
    let reply: ControlReply
    switch self {
    case .store(let store):
      let service = try GrantService(unmounted: store, isReadOnly: false)
      reply = service.perform(order, asking: .ourselves)
      service.finish()
    case .daemon(let client, let status):
      var request = ControlRequest(.grant)
      request.grant = order
      do throws(Errno) {
        reply = try client.ask(request, with: nil) { _ in }
      } catch {
        throw CommandFailure(
          .failed,
          "the daemon of \(status.store) went away (\(error.message)); "
            + "'insula grants' tells what holds by now"
        )
      }
    }
    guard reply.ok else { throw CommandFailure(reply) }
    return reply.grants ?? []
  }

  /// What there is; root may leave open of whom.
  func grants(
    _ identifier: AppIdentifier?, of user: UInt32?, _ context: Context
  ) throws -> [GrantedPlace] {
    let user = user ?? (context.isRoot ? nil : context.uid)
    var places: [GrantedPlace] = []
    var after: Int64 = 0
    switch self {
    case .store(let store):
      let service = try GrantService(unmounted: store, isReadOnly: true)
      while true {
        let part = service.list(identifier, of: user, after: after)
        places += part.places
        guard let next = part.next, next > after else { return places }
        after = next
      }
    case .daemon:
      while true {
        let reply = try ask(grantsOf: identifier, user, after: after)
        places += reply.grants ?? []
        guard let next = reply.next, next > after else { return places }
        after = next
      }
    }
  }

  private func ask(grantsOf identifier: AppIdentifier?, _ user: UInt32?, after: Int64) throws -> ControlReply
  {
    guard case .daemon(let client, let status) = self else { throw Self.noAnswer }
    var request = ControlRequest(.grants)
    request.identifier = identifier?.text
    request.user = user
    request.after = after
    return try client.ask(request, of: status).orFailure()
  }
}

extension String {
  /// The absolute path without `.`, `..` and slashes that say nothing.
  fileprivate var withoutDots: String {
    var names: [Substring] = []
    for name in split(separator: "/") where name != "." {
      if name == ".." { _ = names.popLast() } else { names.append(name) }
    }
    return "/" + names.joined(separator: "/")
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CFuse
internal import CLinux
package import LinuxIO

/// What the kernel calls an object by, from the first reply that names it until it forgets it.
package struct NodeID: Hashable, Sendable {
  package let raw: UInt64
  package init(_ raw: UInt64) { self.raw = raw }

  /// The root of the tree, which the kernel knows without asking.
  package static let root = NodeID(1)
}

/// What the kernel calls an open file or directory by, from the reply to open until release.
package struct HandleID: Hashable, Sendable {
  package let raw: UInt64
  package init(_ raw: UInt64) { self.raw = raw }
}

/// Whom a lock belongs to: one process, or one open file, of one connection.
package struct LockOwner: Hashable, Sendable {
  package let raw: UInt64
  package init(_ raw: UInt64) { self.raw = raw }
}

/// A request, as the kernel numbers it.
package struct RequestID: Hashable, Sendable {
  private static let resent: UInt64 = 1 << 63
  private let raw: UInt64
  package init(_ raw: UInt64) { self.raw = raw }

  /// What is no request of the kernel's.
  package static let none = RequestID(0)

  /// The same for each time that it is sent; 0 for none.
  package var number: UInt64 { raw & ~Self.resent }

  /// Whether it was sent before, to a worker that has died since.
  package var isResent: Bool { raw & Self.resent != 0 }
}

/// The caller of a request, as the kernel reports it.
package struct Caller: Sendable {
  package let uid: UInt32
  package let gid: UInt32
  /// The calling thread; 0 if the kernel itself asks or the caller is out of our sight.
  package let pid: Int32
  package let request: RequestID

  package init(uid: UInt32, gid: UInt32, pid: Int32, request: RequestID = .none) {
    self.uid = uid
    self.gid = gid
    self.pid = pid
    self.request = request
  }
}

/// An object's attributes, and for how many seconds the kernel may answer with them itself.
package struct Attributes {
  package var status: FileStatus
  package var validity: Double

  package init(_ status: FileStatus, validity: Double) {
    self.status = status
    self.validity = validity
  }
}

/// What a name stands for.
///
/// Each reply with one adds one to the lookups that the kernel gives back by forgetting.
package struct Entry {
  /// Nil says that the name is free; for `validity` seconds the kernel need not ask again.
  package var node: NodeID?
  package var attributes: Attributes
  /// For how many seconds the kernel may answer that the name stands for this.
  package var validity: Double

  package init(node: NodeID, attributes: Attributes, validity: Double) {
    self.node = node
    self.attributes = attributes
    self.validity = validity
  }

  /// The name is free.
  package static func absent(validity: Double) -> Entry { Entry(validity: validity) }

  private init(validity: Double) {
    node = nil
    attributes = Attributes(FileStatus(), validity: 0)
    self.validity = validity
  }
}

/// How the kernel is to serve what was just opened.
///
/// The bits are the kernel's `FOPEN_*`.
package struct OpenMode: OptionSet, Sendable {
  package let rawValue: UInt32
  package init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Nothing is kept in the page cache, and no shared memory map can be made.
  package static let direct = OpenMode(rawValue: 1 << 0)
  /// Keep what the page cache, or the cached listing, has from before.
  package static let keepCache = OpenMode(rawValue: 1 << 1)
  /// Keep the listing of this directory.
  package static let cacheListing = OpenMode(rawValue: 1 << 3)
  /// Closing need not be told; no lock could depend on it.
  package static let noFlush = OpenMode(rawValue: 1 << 5)
  /// Data goes straight to the backing file.
  package static let passthrough = OpenMode(rawValue: 1 << 7)
}

/// The reply to open.
package struct Opened {
  package var handle: HandleID
  package var mode: OpenMode
  /// The id under which the kernel knows the backing file, with ``OpenMode/passthrough``.
  package var backing: Int32

  package init(handle: HandleID, mode: OpenMode, backing: Int32 = 0) {
    self.handle = handle
    self.mode = mode
    self.backing = backing
  }
}

/// What the kernel says of a write besides where it goes.
package struct WriteFlags: OptionSet, Sendable {
  package let rawValue: UInt8
  package init(rawValue: UInt8) { self.rawValue = rawValue }

  /// The kernel writes back what is in its page cache, be it by a memory map, through any handle.
  package static let fromCache = WriteFlags(rawValue: 1 << 0)
  /// Set-user-id and set-group-id must go: someone without privilege writes.
  package static let clearsSetID = WriteFlags(rawValue: 1 << 1)
  /// The bytes go to the end of the file, wherever that is by now: the open file has `O_APPEND`.
  package static let atEnd = WriteFlags(rawValue: 1 << 2)
}

/// What setattr is to change.
package struct AttributeChange {
  package var mode: UInt32?
  package var uid: UInt32?
  package var gid: UInt32?
  package var size: Int64?
  package var access: TimeChange = .keep
  package var modification: TimeChange = .keep
  /// Set-user-id and set-group-id must go: someone without privilege has written, truncated or given away.
  package var clearsSetID = false
}

/// A byte-range lock, ends included.
package struct LockRange: Hashable, Sendable {
  package enum Kind: Sendable { case read, write, none }

  package var kind: Kind
  package var first: Int64
  package var last: Int64
  package var pid: Int32

  package init(kind: Kind, first: Int64, last: Int64, pid: Int32) {
    self.kind = kind
    self.first = first
    self.last = last
    self.pid = pid
  }
}

/// What became of a request for a lock.
package enum LockOutcome: Sendable {
  /// Reply now.
  case done
  /// The request waits in a ``ParkedReply``, and its holder replies later.
  case parked
}

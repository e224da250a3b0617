// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy
internal import Synchronization

// What one view does, all others see: what the kernel of another view remembers is withdrawn before the call
// is answered that has changed it.
//
//  1. Whoever lets a kernel remember something notes that first (`Node.Flags.attributesCached`,
//     `Node.namesEpoch`), and looks at the object after. Whoever changes something looks for these notes
//     after the change. So either the change is seen by the look, or the note by who changes.
//  2. A kernel is told by nothing but `attributesChanged` and `entriesChanged`. Neither waits for anything
//     that a request holds, so they may be said from a request's own thread, across views, and while that
//     holds a directory's names or the grants (`NameLocks`, `Grants.moving`); no other lock of ours is held
//     meanwhile.
//  3. An answer that is on its way when something changes: the kernel drops attributes that it was told to
//     forget after it had asked, and looks names up again that it asked for before `entriesChanged`.
//     Attributes that come with a name, of an inode that the kernel does not have yet, it would keep: there
//     names and all are withdrawn, so that it asks again (`Node.toldAt`). Of what it changes itself it drops
//     attributes when it has the answer, but not those that it had asked for before and that come after: so
//     it is told of those as well (`dropAnswersUnderWay`). What comes with a listing it takes in whenever
//     that arrives, so names do not come with listings that others may change.
//  4. Who finds that a note has been taken by another thread, which is still about to tell the kernel, tells
//     it too (`KernelLink.namesUnderWay`): no call returns before the kernel knows.
//  5. What a file has in it the kernel reads and writes itself, the same pages for all views (passthrough).
//     The sizes and times of a file that may be written to through one view are not for the kernels of the
//     others to remember. See `Writing.swift`.

/// What a kernel may remember of an object, and what we have noted of it.
struct Memory: OptionSet {
  let rawValue: UInt8
  static let attributes = Memory(rawValue: 1 << 0)
  /// The names in a directory, and that others are not there.
  static let names = Memory(rawValue: 1 << 1)
  /// The listing of a directory, or the pages of a file.
  static let contents = Memory(rawValue: 1 << 2)
  /// What counts for decisions: not the kernel's, but ours.
  static let security = Memory(rawValue: 1 << 3)
}

extension View {
  /// What this view tells the others about what is done through it.
  var others: Others { Others(view: self) }

  /// Lets the kernel of this view look again, and us; from any thread.
  func forget(_ memory: Memory, of object: ObjectNumber) {
    let found = nodes.with(object) { id, node in forget(memory, id, &node) }
    if let found { tellKernel(found) }
  }

  /// What a kernel is to be told about a node.
  private struct Withdrawal {
    let id: NodeID
    var attributes = false
    var names = false
  }

  /// A name in a directory has come, gone or changed through this view.
  func namesChanged(in directory: ObjectNumber) {
    dropAnswersUnderWay(about: directory)
    others.namesChanged(in: directory)
    volume.arrivingFlags.goesOn(directory)
  }

  /// Attributes of an object have changed through this view, by a call whose answer does not tell the new
  /// ones.
  func attributesChanged(of object: ObjectNumber) {
    dropAnswersUnderWay(about: object)
    others.attributesChanged(of: object)
  }

  /// Withdraws what our own kernel was told of an object that a call of its changes besides, such as a
  /// directory's times.
  ///
  /// It drops those by itself when it has the answer; but what it was told before, and takes in after that,
  /// it would keep.
  func dropAnswersUnderWay(about object: ObjectNumber) {
    let found = nodes.with(object) { id, node in
      // It could not have asked for the change without having the inode.
      node.toldAt = 0
      return forget(.attributes, id, &node)
    }
    if let found { tellKernel(found) }
  }

  /// For how long an answer may be on its way into the kernel: until the client that waits for it has run
  /// again.
  private static var arrivalSeconds: UInt32 { 10 }

  private func forget(_ memory: Memory, _ id: NodeID, _ node: inout Node) -> Withdrawal {
    var withdrawal = Withdrawal(id: id)
    if memory.contains(.security) { node.flags.subtract(.security) }
    if memory.contains(.contents) { node.flags.insert(.contentsChanged) }
    if memory.contains(.attributes), node.flags.remove(.attributesCached) != nil {
      withdrawal.attributes = true
      if node.toldAt != 0, coarseSeconds() &- node.toldAt <= Self.arrivalSeconds {
        node.flags.insert(.isDoubtful)
        withdrawal.names = true
      }
    }
    if memory.contains(.names), node.namesEpoch == kernel.epoch {
      node.namesEpoch = 0
      withdrawal.names = true
    }
    // Still under the lock, so that who finds the notes gone finds these.
    if withdrawal.attributes { kernel.attributesUnderWay.wrappingAdd(1, ordering: .sequentiallyConsistent) }
    if withdrawal.names { kernel.namesUnderWay.wrappingAdd(1, ordering: .sequentiallyConsistent) }
    return withdrawal
  }

  private func tellKernel(_ withdrawal: Withdrawal) {
    let attributes = kernel.attributesUnderWay.load(ordering: .sequentiallyConsistent) > 0
    let names = kernel.namesUnderWay.load(ordering: .sequentiallyConsistent) > 0
    if attributes || names {
      kernel.speak { connection in
        if attributes { connection.attributesChanged(withdrawal.id) }
        if names {
          kernel.beginEpoch()
          _ = connection.entriesChanged()
        }
      }
    }
    if withdrawal.names { noteDisturbance(by: withdrawal.id) }
    if withdrawal.attributes {
      kernel.attributesUnderWay.wrappingSubtract(1, ordering: .sequentiallyConsistent)
    }
    if withdrawal.names { kernel.namesUnderWay.wrappingSubtract(1, ordering: .sequentiallyConsistent) }
  }

  /// Attributes that came with a name may have arrived after the kernel was told to forget them: now that it
  /// names the node, it has taken in all that it ever will.
  func settleDoubt(of node: NodeID) {
    let wasDoubtful = nodes.with(node) { $0.flags.remove(.isDoubtful) != nil }
    if wasDoubtful == true { connection?.attributesChanged(node) }
  }
}

/// All views of a volume but one; with one view alone each call is a look at a number.
struct Others {
  let view: View
  private var volume: Volume { view.volume }

  /// Calls `body` for each that knows an object.
  func forEach(knowing object: ObjectNumber, _ body: (View) -> Void) {
    guard volume.views.areSeveral else { return }
    volume.forEachView(knowing: object, besides: view.number, body)
  }

  /// Whether any other view knows an object.
  func know(_ object: ObjectNumber) -> Bool {
    guard volume.views.areSeveral else { return false }
    return !volume.known.views(of: object, besides: view.number).isEmpty
      || volume.views.asked(besides: view.number)?.nodes.with(object) { _, _ in true } == true
  }

  /// An object is about to be written to, or has another name or none: what it is from then on is not for
  /// an app that made it beside a granted file, or put it aside there.
  func loseSibling(_ object: ObjectNumber) {
    if volume.siblings.isEmpty { return }
    for number in volume.siblings.views(of: object) where number != view.number {
      volume.views[number]?.loseSibling(object)
    }
  }

  /// A name in a directory has come, gone or changed.
  func namesChanged(in directory: ObjectNumber) {
    forEach(knowing: directory) { $0.forget([.attributes, .names, .contents], of: directory) }
  }

  /// Attributes of an object have changed.
  func attributesChanged(of object: ObjectNumber) {
    forEach(knowing: object) { $0.forget(.attributes, of: object) }
  }

  /// What a file has in it has changed, and its attributes.
  func contentsChanged(of file: ObjectNumber) {
    forEach(knowing: file) { $0.forget([.attributes, .contents], of: file) }
  }

  /// Who may do what with an object has changed; names are withdrawn where it has become a directory that is
  /// closed to some.
  func rightsChanged(
    of object: ObjectNumber, from before: Object, to after: Object, _ memory: Memory = .attributes
  ) {
    forEach(knowing: object) { other in
      let closes = other.closes(before, after)
      other.forget(closes ? memory.union(.names) : memory, of: object)
    }
  }

  /// A name has become one of another object, or of none; what had it has other attributes.
  func moved(
    _ object: ObjectNumber, to name: Name, in parent: borrowing NodeTable.Pin, zone: Zone, by payer: Payer
  ) {
    let directory = parent.fd
    let number = parent.number
    forEach(knowing: object) { other in
      other.noteMoved(object, to: name, in: number, directory, zone: zone, by: payer)
      other.forget(.attributes, of: object)
    }
  }

  /// An object is about to lose a name, perhaps its last; who has it open there keeps it.
  func hold(
    _ object: ObjectNumber, losing name: Name, in parent: borrowing NodeTable.Pin, isLast: Bool,
    by payer: Payer
  ) {
    let directory = parent.fd
    let number = parent.number
    forEach(knowing: object) { other in
      let place = other.nodes.with(number) { id, _ in id }
      // One that it knows nothing of is not where it would look for the object.
      guard isLast || place != nil else { return }
      other.nodes.hold(
        object, losing: name, in: place ?? .root, isLast: isLast, by: payer
      ) { () throws(Errno) in try directory.child(name) }
    }
  }
}

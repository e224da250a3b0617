// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
package import LinuxIO
package import Policy
package import Store
internal import Synchronization

extension Volume {
  /// Makes a volume a part of the tree; what had been granted on it is found again.
  package func attach(_ volume: AttachedVolume) {
    redirect(volume)
    noteDisks([volume.record])
    guard let place = try? tree.openDirectory(at: volume.record.place.names),
      (try? changeNames(in: place.fd) { attached.add(volume) }) != nil
    else { return attached.add(volume) }
  }

  /// Takes a volume out of the tree; what is open on it stays open.
  package func detach(_ id: Int64) {
    if let known = attached.attached(id) { redirect(known, to: nil) }
    attached.remove(id)
    // Nothing keeps its filesystem but those who use it.
    forEachView { view in
      view.memory.withdrawNames()
      view.nodes.releaseDescriptors(.max)
    }
  }
}

extension Volume {
  /// Which names of the tree are one name.
  package var treeNames: TreeNames {
    TreeNames(ignoringCase: settings.ignoresCase) { [attached] in attached.isDisk($0) }
  }

  /// Has names in what is elsewhere be compared as its disk does, before any of it is there.
  package func noteDisks(_ records: [VolumeRecord]) {
    for record in records where attached.noteDisk(record) && settings.ignoresCase {
      for view in grants.views { view.granted.compareBytes(below: [record.treePath]) }
    }
  }

  /// Another directory may have the name of a volume that is ejected.
  package func forgetDisk(_ record: VolumeRecord) { attached.forgetDisk(record) }
}

extension Volume {
  /// Lets go of volumes that have left the tree and that nobody uses any more; whether some are still used.
  package func letGo(usersOf users: ([AttachedVolume]) -> [[String]]) -> Bool {
    let (gone, areLeft) = attached.letGo(usersOf: users)
    // The kernel may remember for long what somebody had open.
    if !gone.isEmpty { forEachView { $0.nodes.releaseDescriptors(.max) } }
    // Nobody is there any more for whom the apps in it were sealed; its numbers may be another home's next.
    for volume in gone where volume.home != nil && !isAttached(volume.number) {
      readOnlyRegions.removeAll(below: volume.number)
    }
    return areLeft
  }

  /// Whether a home that has left the tree has come back.
  private func isAttached(_ root: ObjectNumber) -> Bool { attached.all.contains { $0.number == root } }

  /// Has the kernel write what programs have stored in files of volumes through memory maps, and forget what
  /// it keeps of them.
  ///
  /// That waits no longer than it is told to, for all together, since what serves one may not answer.
  package func forgetContents(onDevices devices: [UInt32], milliseconds: Int) {
    let left = Condition(devices.count)
    for device in devices {
      let thread = try? JoinableThread(name: "volumes") { [self] in
        forEachView { view in
          view.memory.kernel.forgetContents(of: view.nodes.files(onDevice: device))
        }
        left.change { $0 -= 1 }
      }
      if let thread { thread.detach() } else { left.change { $0 -= 1 } }
    }
    _ = left.wait(milliseconds: milliseconds) { $0 == 0 }
  }

  /// Whether something lies in what this process serves, by what the kernel remembers; also false before
  /// kernels say which mount a connection is.
  package func serves(_ object: FD) -> Bool {
    guard let device = try? object.deviceInMemory(), device.major == 0 else { return false }
    var isServed = false
    forEachView { if $0.memory.kernel.device == device.minor { isServed = true } }
    return isServed
  }

  /// Has the daemon find a home, which nobody else does before it is a part of the tree.
  package func redirect(_ attached: AttachedVolume) { redirect(attached, to: attached.home) }

  private func redirect(_ attached: AttachedVolume, to target: RedirectedNames.Target?) {
    guard attached.home != nil, let users = try? tree.status(of: "Users") else { return }
    RedirectedNames.set(attached.record.name, in: users, to: target)
  }
}

extension View {
  /// How many files and directories of a volume are open through this view.
  package func opens(on attached: AttachedVolume) -> Int {
    let opened = files.all.map(\.node) + directories.all.map(\.node)
    return opened.count { nodes.isBelow($0, attached.number) }
  }
}

extension NodeTable {
  /// The nodes of all that is known of a filesystem, besides its directories.
  fileprivate func files(onDevice device: UInt32) -> [NodeID] {
    state.withLock { state in
      var found: [NodeID] = []
      state.slab.forEach { index, node in
        guard node.pointee.number.device == device, !node.pointee.flags.contains(.isDirectory) else { return }
        found.append(Self.id(index, node.pointee.generation))
      }
      return found
    }
  }

  /// Whether a node's object lies on the volume whose root has that number.
  fileprivate func isBelow(_ id: NodeID, _ root: ObjectNumber) -> Bool {
    state.withLock { state in
      guard var index = state.index(of: id) else { return false }
      // What was moved behind the daemon's back may seem to contain itself.
      for _ in 0..<4096 {
        guard let node = state.slab.slot(index), node.pointee.isOnVolume else { return false }
        if node.pointee.number == root { return true }
        index = node.pointee.parent
      }
      return false
    }
  }
}

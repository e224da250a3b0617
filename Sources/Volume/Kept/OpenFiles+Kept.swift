// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO

// What is open, as the next worker finds it.

extension OpenFile: KeptOpenItem {
  struct Record: BitwiseCopyable {
    var node: UInt64
    var request: UInt64
    var uid: UInt32
    var gid: UInt32
    var pid: Int32
    var payer: UInt32
    var payerView: UInt32
    var descriptor: Int32
    var appending: Int32
    var backing: Int32
    var access: UInt8
    var isRevocable: UInt8
    var isRoots: UInt8
    var maps: UInt8
  }

  var record: Record {
    Record(
      node: node.raw, request: caller.request.number, uid: caller.uid, gid: caller.gid, pid: caller.pid,
      payer: payer.user, payerView: payer.view, descriptor: descriptor?.number ?? -1,
      appending: appending?.number ?? -1, backing: backing?.id ?? 0,
      access: access.rawValue, isRevocable: isRevocable ? 1 : 0, isRoots: backing?.isRoots == true ? 1 : 0,
      maps: maps.rawValue)
  }

  init?(_ record: Record) {
    node = NodeID(record.node)
    access = Access(rawValue: record.access)
    descriptor = record.descriptor < 0 ? nil : SharedFD(OwnedFD(owning: record.descriptor))
    appending = record.appending < 0 ? nil : SharedFD(OwnedFD(owning: record.appending))
    isRevocable = record.isRevocable != 0
    caller = Caller(uid: record.uid, gid: record.gid, pid: record.pid, request: RequestID(record.request))
    payer = Payer(user: record.payer, view: record.payerView)
    backing = record.backing == 0 ? nil : Backings.Backing(id: record.backing, isRoots: record.isRoots != 0)
    maps = MapUse(rawValue: record.maps) ?? .refused
  }
}

extension OpenDirectory: KeptOpenItem {
  struct Record: BitwiseCopyable {
    var node: UInt64
    var request: UInt64
    var payer: UInt32
    var payerView: UInt32
    var descriptor: Int32
  }

  var record: Record {
    Record(
      node: node.raw, request: request.number, payer: payer.user, payerView: payer.view,
      descriptor: descriptor?.number ?? -1)
  }

  init?(_ record: Record) {
    node = NodeID(record.node)
    payer = Payer(user: record.payer, view: record.payerView)
    request = RequestID(record.request)
    descriptor = record.descriptor < 0 ? nil : SharedFD(OwnedFD(owning: record.descriptor))
    // It begins anew: who reads on has places in one that was much the same.
    listing = descriptor == nil ? nil : KeptListing()
  }
}

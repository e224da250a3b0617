// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CFuse
internal import Glibc
internal import LinuxIO

// Callbacks that deal with names, but for those in FrequentOperations.swift.

func addNameOperations(_ table: inout fuse_lowlevel_ops) {
  table.mknod = { request, parent, name, mode, device in
    serve(request) { (files, caller) throws(Errno) in
      try files.makeNode(
        try checked(name), in: NodeID(parent), mode: mode, device: UInt64(device), by: caller)
    } _: {
      reply($0, $1, $2)
    }
  }
  table.symlink = { request, target, parent, name in
    serve(request) { (files, caller) throws(Errno) in
      guard let target else { throw .EINVAL }
      return try files.makeSymlink(try checked(name), in: NodeID(parent), to: target, by: caller)
    } _: {
      reply($0, $1, $2)
    }
  }
  table.link = { request, node, parent, name in
    serve(request) { (files, caller) throws(Errno) in
      try files.link(NodeID(node), as: try checked(name), in: NodeID(parent), by: caller)
    } _: {
      reply($0, $1, $2)
    }
  }
  table.readlink = { request, node in
    guard let request else { return }
    withUnsafeTemporaryAllocation(byteCount: Int(PATH_MAX), alignment: 8) { buffer in
      serve(request) { (files, _) throws(Errno) in
        try files.readLink(NodeID(node), into: buffer)
      } _: { request, _, count in
        reply(request, UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]))
      }
    }
  }
}

/// The name that the kernel sent, if it is one that an object can have.
func checked(_ name: UnsafePointer<CChar>?) throws(Errno) -> Name {
  guard let name else { throw .EINVAL }
  let checked = Name(name)
  guard checked.isComponent else { throw .EINVAL }
  return checked
}

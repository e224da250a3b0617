// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CFuse
internal import CLinux
internal import Glibc
internal import LinuxIO

// Callbacks that deal with what is known about an object: attributes, extended attributes, flags.

func addAttributeOperations(_ table: inout fuse_lowlevel_ops) {
  table.setattr = { request, node, wanted, toSet, info in
    serve(request) { (files, caller) throws(Errno) in
      guard let wanted else { throw .EINVAL }
      return try files.setAttributes(
        of: NodeID(node), handle: info.map { HandleID($0.pointee.fh) },
        to: change(wanted.pointee, toSet), by: caller)
    } _: { request, _, attributes in
      reply(request, attributes)
    }
  }
  table.access = { request, node, mask in
    serve(request) { (files, caller) throws(Errno) in
      try files.access(NodeID(node), mask: mask, by: caller)
    }
  }
  table.statfs = { request, node in
    serve(request) { (files, _) throws(Errno) in
      try files.statistics(of: NodeID(node))
    } _: { request, _, statistics in
      var statistics = statistics
      fuse_reply_statfs(request, &statistics)
    }
  }
  addExtendedAttributeOperations(&table)
  table.ioctl = { request, node, command, _, _, _, input, inputSize, outputSize in
    switch UInt(command) {
    case UInt(CLX_FS_IOC_GETFLAGS):
      serve(request) { (files, caller) throws(Errno) in
        try files.inodeFlags(of: NodeID(node), by: caller)
      } _: { request, _, flags in
        // The ioctl is declared with a long and used with an int; the kernel takes only the size that it
        // asked for.
        var bytes = UInt64(flags)
        fuse_reply_ioctl(request, 0, &bytes, min(outputSize, 8))
      }
    case UInt(CLX_FS_IOC_FSGETXATTR):
      // Asked for by the kernel itself, too: it compares the flags before it lets anyone set some.
      serve(request) { (files, caller) throws(Errno) in
        try files.inodeFlags(of: NodeID(node), by: caller)
      } _: { request, _, flags in
        // struct fsxattr: of its seven words only the first has something to say.
        var words = InlineArray<7, UInt32>(repeating: 0)
        words[0] = extendedFlags(flags)
        _ = withUnsafeBytes(of: &words) {
          fuse_reply_ioctl(request, 0, $0.baseAddress, min(outputSize, $0.count))
        }
      }
    case UInt(CLX_FS_IOC_SETFLAGS):
      serve(request) { (files, caller) throws(Errno) in
        guard let input, inputSize >= 4 else { throw .EINVAL }
        try files.setInodeFlags(of: NodeID(node), to: input.loadUnaligned(as: UInt32.self), by: caller)
      } _: { (request, _, _: Void) in
        _ = fuse_reply_ioctl(request, 0, nil, 0)
      }
    default:
      fuse_reply_err(request, ENOTTY)
    }
  }
}

/// The same flags by the other numbers that the kernel has for them.
///
/// Corresponds to `fileattr_fill_flags` in the kernel.
private func extendedFlags(_ flags: UInt32) -> UInt32 {
  // Synchronous, immutable, append, no dump, no access time, direct access, project is inherited.
  let pairs: [(UInt32, UInt32)] = [
    (0x8, 0x20), (0x10, 0x8), (0x20, 0x10), (0x40, 0x80), (0x80, 0x40), (0x200_0000, 0x8000),
    (0x2000_0000, 0x200),
  ]
  return pairs.reduce(0) { flags & $1.0 != 0 ? $0 | $1.1 : $0 }
}

/// What setattr is to change, in words.
private func change(_ wanted: stat, _ toSet: Int32) -> AttributeChange {
  var change = AttributeChange()
  if toSet & FUSE_SET_ATTR_MODE != 0 { change.mode = UInt32(wanted.st_mode) & 0o7777 }
  if toSet & FUSE_SET_ATTR_UID != 0 { change.uid = UInt32(wanted.st_uid) }
  if toSet & FUSE_SET_ATTR_GID != 0 { change.gid = UInt32(wanted.st_gid) }
  if toSet & FUSE_SET_ATTR_SIZE != 0 { change.size = Int64(wanted.st_size) }
  if toSet & FUSE_SET_ATTR_ATIME_NOW != 0 {
    change.access = .now
  } else if toSet & FUSE_SET_ATTR_ATIME != 0 {
    change.access = .set(wanted.st_atim)
  }
  if toSet & FUSE_SET_ATTR_MTIME_NOW != 0 {
    change.modification = .now
  } else if toSet & FUSE_SET_ATTR_MTIME != 0 {
    change.modification = .set(wanted.st_mtim)
  }
  // libfuse hides bit 11 of `valid`. Nothing at all to set is the kernel's word for a write without privilege
  // to a file with passthrough: it asks for the same.
  let killSetID: UInt32 = 1 << 11
  let valid = Wire.word(at: Wire.headerSize, of: Session.currentMessage)
  let handleOnly: UInt32 = 1 << 6 | 1 << 9
  change.clearsSetID = valid & killSetID != 0 || valid & ~handleOnly == 0
  return change
}

private func addExtendedAttributeOperations(_ table: inout fuse_lowlevel_ops) {
  table.getxattr = { request, node, name, size in
    withReplyBuffer(request, size) { buffer in
      serve(request) { (files, caller) throws(Errno) in
        guard let name else { throw .EINVAL }
        return try files.attribute(Name(name), of: NodeID(node), into: buffer, by: caller)
      } _: { request, _, count in
        replySized(request, buffer, count)
      }
    }
  }
  table.listxattr = { request, node, size in
    withReplyBuffer(request, size) { buffer in
      serve(request) { (files, caller) throws(Errno) in
        try files.attributeNames(of: NodeID(node), into: buffer, by: caller)
      } _: { request, _, count in
        replySized(request, buffer, count)
      }
    }
  }
  table.setxattr = { request, node, name, value, size, flags in
    serve(request) { (files, caller) throws(Errno) in
      guard let name, let value, Session.isInCurrentMessage(value, count: size) else { throw .EINVAL }
      try files.setAttribute(
        Name(name), of: NodeID(node), to: UnsafeRawBufferPointer(start: value, count: size),
        flags: flags, by: caller)
    }
  }
  table.removexattr = { request, node, name in
    serve(request) { (files, caller) throws(Errno) in
      guard let name else { throw .EINVAL }
      try files.removeAttribute(Name(name), of: NodeID(node), by: caller)
    }
  }
}

/// Lends a buffer of the size that the kernel asks for; the kernel's limit on values and lists is 64 KiB.
private func withReplyBuffer(
  _ request: fuse_req_t?, _ size: Int, _ body: (UnsafeMutableRawBufferPointer) -> Void
) {
  let limit = 1 << 16
  guard size >= 0 else {
    fuse_reply_err(request, EINVAL)
    return
  }
  withUnsafeTemporaryAllocation(byteCount: min(size, limit), alignment: 8, body)
}

/// Answers with the value, or with its size where that was asked for.
private func replySized(_ request: fuse_req_t, _ buffer: UnsafeMutableRawBufferPointer, _ count: Int) {
  if buffer.count == 0 {
    fuse_reply_xattr(request, count)
  } else {
    reply(
      request, UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<min(count, buffer.count)]))
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy

extension View {
  /// Tells whoever wants to know what this view has refused.
  package func refused(_ request: RefusedRequest) {
    guard let listener = volume.refusals, let note = RefusalNote(request.note) else { return }
    let rule = RefusalRule(note, inApp: app != nil)
    guard appThatAsked(request.caller) != nil || rule.isOurs else { return }
    tell(listener, request, rule)
  }

  /// Tells of a request by which two workers have died, and drops what they have opened for it.
  package func gaveUp(_ request: RefusedRequest) {
    releaseUnanswered(request.caller.request)
    if let listener = volume.refusals { tell(listener, request, .deadly) }
  }

  /// Another user who was let into an app's view is judged as one who looks at the whole tree.
  private func appThatAsked(_ caller: Caller) -> AppIdentifier? {
    audience.user.map { $0 == caller.uid } ?? true ? app : nil
  }

  private func tell(_ listener: any RefusalListener, _ request: RefusedRequest, _ rule: RefusalRule) {
    listener.refused(
      Refusal(
        app: appThatAsked(request.caller), user: request.caller.uid, thread: request.caller.pid,
        operation: request.operation, rule: rule, key: key(of: request, rule))
    ) { path(of: request) }
  }

  private func key(of request: RefusedRequest, _ rule: RefusalRule) -> Int {
    var hasher = Hasher()
    hasher.combine(number)
    hasher.combine(request.node)
    hasher.combine(request.operation)
    hasher.combine(rule)
    if let name = request.name { hasher.combine(bytes: UnsafeRawBufferPointer(name.buffer)) }
    return hasher.finalize()
  }

  /// The path below the root of the tree, as it is now.
  private func path(of request: RefusedRequest) -> [UInt8]? {
    guard let object = try? nodes.reference(to: request.node),
      var names = volume.kernelPath(of: object.fd)
    else { return nil }
    // An object without a name has the path of the root, as far as the kernel tells.
    if names.isEmpty, request.node != .root { return nil }
    if let name = request.name { names.append(Array(name.buffer)) }
    return GrantPath.path(names)
  }
}

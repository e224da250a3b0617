// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CSessionBus
internal import Glibc
internal import LinuxIO

/// The person's session bus, by sd-bus.
///
/// Only for one thread.
final class SessionBus {
  private let bus: OpaquePointer

  /// Connects; the sentence that it throws has no subject.
  init() throws(CommandFailure) {
    if let reason = csessionbus_load() {
      throw CommandFailure(.failed, "libsystemd can't be loaded (\(String(cString: reason)))")
    }
    var opened: OpaquePointer?
    let result = sd_bus_open_user(&opened)
    guard result >= 0, let opened else {
      throw CommandFailure(.failed, "there is no session bus (\(Errno(-result).message))")
    }
    bus = opened
  }

  deinit { sd_bus_flush_close_unref(bus) }

  var fd: FD { FD(sd_bus_get_fd(bus)) }

  /// The name that the bus has given us.
  var uniqueName: String {
    var name: UnsafePointer<CChar>?
    guard sd_bus_get_unique_name(bus, &name) >= 0, let name else { return "" }
    return String(cString: name)
  }

  /// An object's method on the bus.
  struct Method {
    let destination: String
    let path: String
    let interface: String
    let name: String
  }

  /// Calls a method; its answer may take for ever, unless there is a time limit in seconds.
  func call(_ method: Method, _ values: [BusValue], seconds: UInt64? = nil) -> BusCall? {
    var made: OpaquePointer?
    guard
      sd_bus_message_new_method_call(
        bus, &made, method.destination, method.path, method.interface, method.name) >= 0, let made
    else { return nil }
    defer { sd_bus_message_unref(made) }
    guard values.allSatisfy({ $0.append(to: made) }) else { return nil }
    let call = BusCall()
    let limit = seconds.map { $0 * 1_000_000 } ?? .max
    guard sd_bus_call_async(bus, &call.slot, made, takeMessage, call.box, limit) >= 0 else { return nil }
    return call
  }

  /// Calls a method that answers at once.
  func answer(to method: Method, _ values: [BusValue] = []) throws(CommandFailure) -> BusMessage? {
    guard let call = call(method, values, seconds: 5) else { return nil }
    while call.messages.isEmpty { _ = try wait(also: nil, milliseconds: 5000) }
    return call.messages.first
  }

  /// Has signals come that match a rule, as D-Bus writes those.
  func signals(_ rule: String) -> BusCall? {
    let signals = BusCall()
    return sd_bus_add_match(bus, &signals.slot, rule, takeMessage, signals.box) >= 0 ? signals : nil
  }

  /// Throws if the bus has gone: then sd-bus has answered all calls itself.
  func check() throws(CommandFailure) {
    guard sd_bus_is_open(bus) > 0 else { throw Self.gone }
  }

  enum Event { case bus, other, timeIsOver }

  /// Waits until something has come on the bus, or there is something to read elsewhere.
  func wait(also other: FD?, milliseconds: Int32) throws(CommandFailure) -> Event {
    if try process() { return .bus }
    var watched = [
      pollfd(fd: fd.raw, events: Int16(clamping: sd_bus_get_events(bus)), revents: 0),
      pollfd(fd: other?.raw ?? -1, events: Int16(POLLIN), revents: 0),
    ]
    guard let count = try? retrying({ poll(&watched, 2, patience(milliseconds)) }) else { throw Self.gone }
    if try process() { return .bus }
    if watched[1].revents != 0 { return .other }
    return count == 0 ? .timeIsOver : .bus
  }

  /// Until the bus has something to do by itself, and for so long at most.
  private func patience(_ milliseconds: Int32) -> Int32 {
    var end: UInt64 = .max
    guard sd_bus_get_timeout(bus, &end) >= 0, end != .max else { return milliseconds }
    let now = monotonicNanoseconds() / 1000
    let left = end > now ? Int32(clamping: (end - now) / 1000 + 1) : 0
    return min(milliseconds, left)
  }

  /// Does what there is to do; whether there was something.
  func process() throws(CommandFailure) -> Bool {
    var hasDone = false
    while true {
      let result = sd_bus_process(bus, nil)
      if result < 0 { throw Self.gone }
      if result == 0 { return hasDone }
      hasDone = true
    }
  }

  private static var gone: CommandFailure { CommandFailure(.failed, "agent: the session bus has gone") }
}

/// What comes on the bus because of something: the answer to a call, or signals.
final class BusCall {
  fileprivate var slot: OpaquePointer?
  fileprivate(set) var messages: [BusMessage] = []

  /// Valid for as long as the slot is.
  fileprivate var box: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  deinit { sd_bus_slot_unref(slot) }
}

/// A message that has come.
final class BusMessage {
  private let message: OpaquePointer

  fileprivate init(_ message: OpaquePointer) {
    self.message = message
    sd_bus_message_ref(message)
  }

  deinit { sd_bus_message_unref(message) }

  /// Its contents, from where they were read up to.
  var reader: BusReader { BusReader(message, of: self) }

  /// The bus's own name for who has sent it.
  var sender: String { sd_bus_message_get_sender(message).map { String(cString: $0) } ?? "" }

  var path: String { sd_bus_message_get_path(message).map { String(cString: $0) } ?? "" }

  /// Why a call has failed; nil if it has not.
  var failure: (name: String, message: String)? {
    guard sd_bus_message_is_method_error(message, nil) > 0 else { return nil }
    let error = sd_bus_message_get_error(message)?.pointee
    return (
      error?.name.map { String(cString: $0) } ?? "", error?.message.map { String(cString: $0) } ?? ""
    )
  }
}

/// What sd-bus calls with each message; zero lets others see it too.
private func takeMessage(
  _ message: OpaquePointer?, _ box: UnsafeMutableRawPointer?, _ error: UnsafeMutablePointer<sd_bus_error>?
) -> Int32 {
  if let message, let box {
    Unmanaged<BusCall>.fromOpaque(box).takeUnretainedValue().messages.append(BusMessage(message))
  }
  return 0
}

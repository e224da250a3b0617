// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// In which order apps are shown.
struct TopOrder: Equatable {
  enum Column: Equatable { case memory, cpu, time, requests, name }

  var column = Column.cpu
  var isReversed = false

  func sorted(_ apps: [TopReport.App]) -> [TopReport.App] {
    let sorted = apps.inOrder { one, other in
      switch column {
      case .memory where one.memory != other.memory: one.memory > other.memory
      case .cpu where one.cpuPercent != other.cpuPercent: one.cpuPercent > other.cpuPercent
      case .time where one.cpuMilliseconds != other.cpuMilliseconds:
        one.cpuMilliseconds > other.cpuMilliseconds
      case .requests where one.requestsPerSecond ?? 0 != other.requestsPerSecond ?? 0:
        one.requestsPerSecond ?? 0 > other.requestsPerSecond ?? 0
      // What is equal stays where it was.
      default: (one.identifier, one.pid) < (other.identifier, other.pid)
      }
    }
    return isReversed ? sorted.reversed() : sorted
  }
}

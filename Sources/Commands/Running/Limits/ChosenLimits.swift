// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// The limits that a person gives an app that they run; they count more than the bundle's, in both
/// directions.
struct ChosenLimits: Equatable {
  static let options: [CommandDescription.Option] = [
    .init(name: "memory", value: "SIZE", help: "limit its memory, as in 512M or 2G"),
    .init(name: "processes", value: "N", help: "limit its processes and threads"),
    .init(name: "cpu", value: "PERCENT", help: "limit its share of the CPUs: 50% is half of one, 200% two"),
    .init(name: "files", value: "N", help: "limit the files that each of its processes has open"),
  ]

  /// What is written where a limit of the bundle is not to hold.
  private static let none = "none"

  private var limits = ResourceLimits()
  private var lifted: Set<ResourceLimits.Kind> = []
  /// As options, for a command that goes on in another process.
  private(set) var words: [String] = []

  init(_ arguments: ParsedArguments, for description: CommandDescription) throws(UsageError) {
    for kind in ResourceLimits.Kind.allCases {
      guard let text = arguments.value(kind.option) else { continue }
      words.append("--\(kind.option)=\(text)")
      if text == Self.none {
        lifted.insert(kind)
        continue
      }
      do throws(LimitRefusal) {
        limits[kind] = try kind.value(of: text)
      } catch {
        throw description.error("--\(kind.option): \(error.reason), or '\(Self.none)'")
      }
    }
  }

  /// Whether the person has asked for a limit of that kind.
  func has(_ kind: ResourceLimits.Kind) -> Bool { limits[kind] != nil }

  /// What holds for an app whose bundle has these limits.
  func over(_ bundles: ResourceLimits) -> ResourceLimits {
    var result = bundles
    for kind in lifted { result[kind] = nil }
    for kind in limits.kinds { result[kind] = limits[kind] }
    return result
  }
}

extension ResourceLimits.Kind {
  /// The option's name, without dashes.
  var option: String {
    switch self {
    case .memory: "memory"
    case .processes: "processes"
    case .cpu: "cpu"
    case .openFiles: "files"
    }
  }
}

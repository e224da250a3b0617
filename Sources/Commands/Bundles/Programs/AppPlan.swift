// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What an app is to be made of: one file that is started, and what lies among its resources.
struct AppPlan {
  /// Where something comes from.
  enum Source: Equatable {
    case bytes([UInt8])
    /// A file of the machine.
    case file(String)
    /// A directory of the machine, with all that is in it.
    case tree(String)
  }

  struct Item: Equatable {
    /// Below the resources.
    let path: String
    let source: Source
    var isExecutable = false
  }

  /// Where a program is that does not stand for itself, with its directory, below the resources.
  static let programPlace = "Program"
  static let libraryPlace = "Libraries"

  /// What is started: a program or script itself, or one that starts it.
  var executable: Source
  var items: [Item] = []
  /// Files below the program's place that must be there and executable, whatever they were.
  var started: [String] = []
  /// Where it comes from, for people.
  var origin: String
  /// What a person should know.
  var notes: [String] = []
}

/// The script that starts a program which lies among an app's resources.
struct Launcher {
  /// A word of the command that it becomes.
  enum Word {
    /// As it is.
    case plain(String)
    /// A path below the program's place.
    case program(String)

    fileprivate var forShell: String {
      switch self {
      case .plain(let text): text.forShell
      case .program(let path): "\"$resources/\(AppPlan.programPlace)\"/" + path.forShell
      }
    }
  }

  var words: [Word]
  var hasLibraries = false

  /// What must be in the app for it, below the program's place.
  var programs: [String] {
    words.compactMap { if case .program(let path) = $0 { path } else { nil } }
  }

  /// `isFlat` says where the resources are.
  func script(isFlat: Bool) -> [UInt8] {
    var lines = ["#!/bin/sh", "# Starts the program that is among the app's resources."]
    lines.append("resources=${0%/*}" + (isFlat ? "" : "/../Resources"))
    if hasLibraries {
      let place = "\"$resources/\(AppPlan.libraryPlace)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\""
      lines.append("export LD_LIBRARY_PATH=" + place)
    }
    lines.append("exec " + words.map(\.forShell).joined(separator: " ") + " \"$@\"")
    return Array((lines.joined(separator: "\n") + "\n").utf8)
  }
}

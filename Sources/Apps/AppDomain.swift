// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// For whom an app is installed.
package enum AppDomain: Hashable, Sendable {
  /// In `/Applications`, for all users of the machine.
  case everyone
  /// In the `Applications` of the home of that name.
  case user(String)

  /// The path of the directory that the bundles are in, below the root of the tree.
  package var path: String {
    switch self {
    case .everyone: "Applications"
    case .user(let name): "Users/\(name)/Applications"
    }
  }
}

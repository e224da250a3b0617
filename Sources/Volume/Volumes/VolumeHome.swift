// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO

/// A home on a volume.
package struct VolumeHome: Sendable {
  /// By which a walk through the tree gets into it.
  package let target: RedirectedNames.Target
  /// The directory that it is in.
  package let source: SharedFD

  package init(target: RedirectedNames.Target, source: SharedFD) {
    self.target = target
    self.source = source
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// By what the programs of volumes live, as the next worker finds it: of each volume that of the last one.
///
/// It is noted before the program starts, and forgotten before it is closed.
struct KeptLives {
  private let kept: KeptState?

  init(_ kept: KeptState?) { self.kept = kept }

  func keep(_ life: SharedFD, of id: Int64) {
    let view = UInt32(truncatingIfNeeded: id)
    guard kept?.descriptor(.volumeLife, view: view)?.raw != life.number else { return }
    kept?.forget(.volumeLife, view: view)
    kept?.keep(FD(life.number), as: .volumeLife, view: view)
  }

  /// Forgets the last one of a volume, if it is that.
  func forget(_ id: Int64, ifItIs life: SharedFD? = nil) {
    let view = UInt32(truncatingIfNeeded: id)
    guard life == nil || kept?.descriptor(.volumeLife, view: view)?.raw == life?.number else { return }
    kept?.forget(.volumeLife, view: view)
  }

  /// What another worker has left, which is the caller's from here on: nobody may take it twice.
  func take(_ id: Int64) -> SharedFD? {
    guard let kept, kept.hasPredecessor else { return nil }
    return kept.descriptor(.volumeLife, view: UInt32(truncatingIfNeeded: id)).map {
      SharedFD(OwnedFD(owning: $0.raw))
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

#if DEBUG
  internal import Glibc

  /// A process that stops at a point until a test goes on: for tests of what others can do at that moment.
  ///
  /// In debug builds alone, and only where INSULA_HALT names a directory. A file there with the point's name
  /// stops the next process that comes to the point: it renames the file to `reached`, and goes on when there
  /// is a file `go`, or after half a minute.
  package enum Halt {
    package enum Point: String {
      /// An app's bundle is about to get its name.
      case bundleStaged
      /// The copy that takes a container's place has been checked and completed.
      case copyChecked
      /// The name of the copy was just seen to lead to it.
      case copyCompared
      /// A home outside of the store is about to be looked into, which another worker has had.
      case homeTakenOver
      /// The path of the mount point is known, and the directory is not open.
      case mountPointFound
      /// The directory that is to be mounted on is open.
      case mountPointOpened
      /// An app that is started has its view, and nobody knows the view yet.
      case viewMade
    }

    private static let directory = getenv("INSULA_HALT").map { String(cString: $0) }

    package static func at(_ point: Point) {
      guard let directory, rename("\(directory)/\(point)", "\(directory)/reached") == 0 else { return }
      // A test may make that file from anywhere, and nothing else tells of it.
      for _ in 0..<3000 where access("\(directory)/go", F_OK) != 0 { usleep(10_000) }
    }
  }
#endif

// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// In a store that ignores case, a name that has a meaning in a place has it in every spelling, also while
// nothing is there yet: `inbox` in an app's Documents is its Inbox.

extension Zone {
  /// The spelling that rules know of the name in a directory here that this is a folding of
  /// (``foldedName(_:)``); nil if they know none.
  package func standardName(ofFolded folded: [UInt8]) -> [UInt8]? {
    // All that begins so is reserved.
    if isContainerData, folded.starts(with: ContainerLayout.reservedPrefix.utf8) { return folded }
    for name in standardNames
    where name.utf8.elementsEqual(folded, by: { $0 &- 0x41 < 26 ? $0 | 0x20 == $1 : $0 == $1 }) {
      return Array(name.utf8)
    }
    return nil
  }

  /// Whether rules know any name in a directory here.
  package var hasStandardNames: Bool { isContainerData || !standardNames.isEmpty }

  /// The names in a directory here by which something is judged, shown or left out; all are ASCII.
  private var standardNames: [Substring] {
    switch self {
    case .top: Self.topZones.map { Substring($0.0) }
    case .applications: ["Utilities"]
    case .library: Self.standardLibraryNames
    case .networkStandard: ["Applications"]
    case .users: ["Shared"]
    case .home: HomeDirectory.all.map(\.path).filter { !$0.utf8.contains(UInt8(ascii: "/")) }.map { $0[...] }
    case .homeLibrary:
      Self.libraryZones.map { Substring($0.0) }
        + HomeDirectory.all.map(\.path).filter { $0.hasPrefix("Library/") }.map { $0.dropFirst(8) }
    case .container: [Substring(ContainerLayout.dataName)]
    case .containerData, .macContainerData: ContainerLayout.dataDirectories.map { $0[...] }
    case .containerDocuments: [Substring(ContainerLayout.inboxName)]
    case .groupContainer: [Substring(ContainerLayout.metadataName)]
    case .cloudContainer: ["Documents"]
    default: []
    }
  }
}

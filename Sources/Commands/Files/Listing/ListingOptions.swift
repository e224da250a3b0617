// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// What a listing is to look like.
struct ListingOptions {
  enum Order { case name, time, size }

  let isLong: Bool
  let showsACLs: Bool
  let showsFlags: Bool
  let showsAttributes: Bool
  let showsHidden: Bool
  let showsSelfAndParent: Bool
  let showsDirectoriesThemselves: Bool
  let isRecursive: Bool
  let isNumeric: Bool
  let hasUnits: Bool
  let hasSeconds: Bool
  let order: Order
  let isReversed: Bool
  let showsNumber: Bool
  let showsKind: Bool
  /// Whether files are listed as a person sees them.
  let isForPerson: Bool
  let json: Bool

  init(_ arguments: ParsedArguments) {
    isNumeric = arguments.has("n")
    isLong = arguments.has("l") || isNumeric
    showsACLs = arguments.has("e")
    showsFlags = arguments.has("O")
    showsAttributes = arguments.has("@")
    showsSelfAndParent = arguments.has("a") && !arguments.has("A")
    showsHidden = arguments.has("a") || arguments.has("A")
    showsDirectoriesThemselves = arguments.has("d")
    isRecursive = arguments.has("R") && !arguments.has("d")
    hasUnits = arguments.has("h")
    hasSeconds = arguments.has("T")
    order = arguments.has("S") ? .size : arguments.has("t") ? .time : .name
    isReversed = arguments.has("r")
    showsNumber = arguments.has("i")
    showsKind = arguments.has("F")
    isForPerson = arguments.has("finder")
    json = arguments.has("json")
  }

  /// Whether more is wanted of a file than its name and status.
  var needsDetails: Bool { isLong || json }

  /// Whether one is listed before the other.
  func precedes(_ first: ListedFile, _ second: ListedFile) -> Bool {
    let (first, second) = isReversed ? (second, first) : (first, second)
    switch order {
    case .size where first.status.st_size != second.status.st_size:
      return first.status.st_size > second.status.st_size
    case .time:
      let (one, other) = (first.status.st_mtim, second.status.st_mtim)
      if one.tv_sec != other.tv_sec { return one.tv_sec > other.tv_sec }
      if one.tv_nsec != other.tv_nsec { return one.tv_nsec > other.tv_nsec }
    default: break
    }
    return first.name.lexicographicallyPrecedes(second.name)
  }
}

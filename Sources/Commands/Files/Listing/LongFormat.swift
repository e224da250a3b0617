// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy

/// The columns of `ls -l` as a Mac prints them, as wide as the files of one directory need.
struct LongFormat {
  private struct Cells {
    let links: String
    let user: String
    let group: String
    let flags: String
    let size: String
  }

  private let options: ListingOptions
  private let names: AccountNames
  private let now: Int
  private let widths: (links: Int, user: Int, group: Int, flags: Int, size: Int)

  init(_ files: [ListedFile], _ options: ListingOptions, _ names: AccountNames, now: Int) {
    self.options = options
    self.names = names
    self.now = now
    let cells = files.map { Self.cells($0, options, names) }
    func width(_ cell: (Cells) -> String) -> Int { cells.map { cell($0).count }.max() ?? 0 }
    widths = (width(\.links), width(\.user), width(\.group), width(\.flags), width(\.size))
  }

  private static func cells(_ file: ListedFile, _ options: ListingOptions, _ names: AccountNames) -> Cells {
    let status = file.status
    let user = options.isNumeric ? nil : names.userName(status.st_uid)?.sanitized
    let group = options.isNumeric ? nil : names.groupName(status.st_gid)?.sanitized
    let isDevice = status.type == S_IFCHR || status.type == S_IFBLK
    let device = DeviceNumber(UInt64(status.st_rdev))
    let size =
      isDevice
      ? "\(device.major), \(device.minor)"
      : options.hasUnits ? Self.withUnit(Int(status.st_size)) : String(status.st_size)
    return Cells(
      links: String(status.st_nlink), user: user ?? String(status.st_uid),
      group: group ?? String(status.st_gid), flags: file.flags.isEmpty ? "-" : file.flags.words, size: size)
  }

  /// What stands before the name.
  func columns(of file: ListedFile) -> String {
    let cells = Self.cells(file, options, names)
    var text = file.mode + file.suffix + " " + cells.links.padded(to: widths.links) + " "
    text += cells.user.padded(to: widths.user, left: true) + "  "
    text += cells.group.padded(to: widths.group, left: true) + "  "
    if options.showsFlags { text += cells.flags.padded(to: widths.flags, left: true) + " " }
    return text + cells.size.padded(to: widths.size) + " " + time(Int(file.status.st_mtim.tv_sec)) + " "
  }

  /// The lines below: attributes, then the ACL.
  func below(_ file: ListedFile) -> String {
    var text = ""
    if options.showsAttributes {
      for (name, size) in file.attributes {
        let size = options.hasUnits ? Self.withUnit(size) : String(size)
        text += "\t\(name.sanitized)\t\(size.padded(to: 4)) \n"
      }
    }
    if options.showsACLs, let acl = file.acl {
      let isDirectory = file.status.isDirectory
      for line in acl.lines(isDirectory: isDirectory, names: names, numeric: options.isNumeric) {
        text += line.sanitized + "\n"
      }
    }
    return text
  }

  /// Half a year back and forth the time of day, otherwise the year.
  private func time(_ seconds: Int) -> String {
    var point = time_t(seconds)
    var local = tm()
    guard localtime_r(&point, &local) != nil else { return String(seconds) }
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    let month = months.indices.contains(Int(local.tm_mon)) ? months[Int(local.tm_mon)] : "???"
    let day = "\(month) \(String(local.tm_mday).padded(to: 2))"
    func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let clock = "\(two(local.tm_hour)):\(two(local.tm_min))"
    let year = Int(local.tm_year) + 1900
    if options.hasSeconds { return "\(day) \(clock):\(two(local.tm_sec)) \(year)" }
    let halfYear = 365 / 2 * 86400
    let isNear = seconds > now - halfYear && seconds < now + halfYear
    return isNear ? "\(day) \(clock)" : "\(day)  \(year)"
  }

  /// `1.2K`: at most three digits and a letter, rounded, as the C library of a Mac does it.
  static func withUnit(_ size: Int) -> String {
    var scaled = Double(size)
    for unit in ["B", "K", "M", "G", "T", "P"] {
      let isLast = unit == "P"
      if scaled < 9.95 && unit != "B" {
        let tenths = Int((scaled * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)\(unit)"
      }
      if scaled < 999.5 || isLast { return "\(Int(scaled.rounded()))\(unit)" }
      scaled /= 1024
    }
    return "\(size)B"
  }
}

extension String {
  /// With blanks in front, or behind if it is to stand left.
  func padded(to width: Int, left: Bool = false) -> String {
    let blanks = String(repeating: " ", count: max(0, width - count))
    return left ? self + blanks : blanks + self
  }
}

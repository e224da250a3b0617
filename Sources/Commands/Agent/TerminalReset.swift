// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// What has a terminal show a question as it is, whatever an app has sent to it before.
///
/// The app could have it swallow or hide the question, or show one of its own in its place. So the terminal
/// is brought to obey, is reset as a whole (RIS), and then gets back what a reset leaves as it is. What a
/// terminal does not know, it may show: that comes before the screen is cleared.
enum TerminalReset {
  static let text = [
    // In this order: tmux may take screen's for the end of its own.
    leaving, "\u{1b}Ptmux;\(doubled(outside))\u{1b}\\", "\u{1b}P\(outside)\u{1b}\\", leaving, modes,
    "\u{1b}c", looks, clear,
  ].joined()

  /// Takes a question off the screen: the app could ask the terminal what is there.
  static let clear = "\u{1b}[0m\u{1b}[H\u{1b}[J"

  /// Makes a window larger that is too small for a question.
  static let enlarge = "\u{1b}[8;24;80t"

  /// Out of everything in which the terminal does not obey.
  private static let leaving = [
    // The end of whatever string is half sent.
    "\u{18}", "\u{1b}\\",
    // Out of Tektronix's mode, whose window of its own stays, then out of VT52's.
    "\u{1b}\u{3}", "\u{1b}<",
    // What follows does not go to a printer.
    "\u{18}\u{1b}\\", "\u{1b}[4i", "\u{1b}[?4i",
  ].joined()

  /// For the terminal in which a multiplexer runs.
  ///
  /// screen passes on to it what an app sends in such a string, and tmux where that is allowed. A reset would
  /// be behind their back.
  private static let outside = [
    "\u{18}", "\u{1b}\u{3}", "\u{1b}<", "\u{1b}[4i", "\u{f}", "\u{1b}(B", off([5, 6, 69, 2026]), "\u{1b}[r",
    "\u{1b}[0m", "\u{1b}[?25h", "\u{1b}[0$}", "\u{1b}[0$~", "\u{1b}[1t",
    colours.map { "\u{1b}]\($0)\u{7}" }.joined(), "\u{1b}]50;#0\u{7}",
  ].joined()

  private static let modes = [
    "\u{1b}[!p",
    // Keys come as such; no keyboard lock, no insertion, no local echo, lines end as ever.
    "\u{1b}[2l\u{1b}[4l\u{1b}[12h\u{1b}[20l", "\u{1b}[<99u\u{1b}[=0u", "\u{1b}[>4;0m",
    // Keys of the cursor, a reverse screen, origin, mouse, focus, reverse wrap, margins, paste, updates that
    // are shown together.
    off([1, 5, 6, 9, 45, 66, 69, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004, 2026]),
    "\u{1b}[?7h\u{1b}[?25h", "\u{1b}[r",
    // Letters are letters, and go to the screen and not to a status line.
    "\u{1b}%G\u{f}\u{1b}(B\u{1b})B\u{1b}*B\u{1b}+B", "\u{1b}[0m", "\u{1b}[0$}\u{1b}[0$~",
    // Pictures that lie over them.
    "\u{1b}_Ga=d,d=A\u{1b}\\",
  ].joined()

  /// What a reset leaves: character set, colours, font, an icon instead of the window.
  private static let looks = [
    "\u{1b}%G\u{f}\u{1b}(B", colours.map { "\u{1b}]\($0)\u{1b}\\" }.joined(), "\u{1b}]R\u{1b}\\",
    "\u{1b}]50;#0\u{1b}\\", "\u{1b}[1t\u{1b}[5t", "\u{1b}[?7h\u{1b}[?25h\u{1b}[r",
  ].joined()

  /// The palette, and the colours of text, background, pointer and the like.
  private static let colours = [104, 105, 106] + Array(110...119)

  private static func off(_ modes: [Int]) -> String { modes.map { "\u{1b}[?\($0)l" }.joined() }

  /// As tmux wants it in a string.
  private static func doubled(_ text: String) -> String { text.replacing(each: "\u{1b}", by: "\u{1b}\u{1b}") }
}

/// How large a terminal is.
struct TerminalSize: Equatable {
  var columns = 80
  var rows = 24

  /// Whether a question does not fit.
  var isSmall: Bool { columns < 40 || rows < 12 }
}

extension FD {
  /// One that does not say is as large as they always were.
  var terminalSize: TerminalSize {
    var size = winsize()
    let getSize: UInt = 0x5413
    guard clx_ioctl(raw, getSize, &size) == 0, size.ws_col > 0, size.ws_row > 0 else { return TerminalSize() }
    return TerminalSize(columns: Int(size.ws_col), rows: Int(size.ws_row))
  }
}

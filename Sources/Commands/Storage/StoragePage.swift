// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy

/// A report as a page for a browser, complete in itself: no script, nothing from a network.
///
/// Names in it were chosen by strangers. All of them go through ``escaped(_:)``, and the page forbids the
/// browser to run or fetch anything, whatever may be in it.
struct StoragePage {
  let text: String

  init(_ report: StorageReport, withUsers: Bool, at time: Int64) {
    let space = report.available
    let used = Self.percent(space.used, of: space.total)
    let apps = report.items.map { Self.app($0, most: report.items.first?.sizes.total ?? 0, withUsers, time) }
    let more =
      report.others > 0
      ? "<p>\(report.others) more use \(report.othersBytes.asSize). "
        + "<code>insula storage ID</code> shows one of them.</p>\n" : ""
    text = """
      <!DOCTYPE html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <meta name="color-scheme" content="light dark">
      <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
      <title>Storage</title>
      <style>
      \(Self.style)
      </style>
      </head>
      <body>
      <main>
      <h1>Storage</h1>
      <section aria-labelledby="disk">
      <h2 id="disk">Disk</h2>
      <p>\(space.used.asSize) of \(space.total.asSize) used</p>
      <div class="bar disk" role="img" aria-label="\(used) percent of the disk is used">\
      \(Self.disk(report))</div>
      <ul class="legend">
      <li><span class="key apps"></span>Apps and their data: \(report.used.total.asSize)</li>
      <li><span class="key rest"></span>Everything else: \(max(0, space.used - report.used.total).asSize)</li>
      <li><span class="key free"></span>Free: \(space.free.asSize)</li>
      </ul>
      <p>A purge would free \(report.purgeable.asSize) of what these apps can make again. There are \
      \(space.importantUsage.asSize) for what is important, and \(space.opportunisticUsage.asSize) for what \
      can wait.</p>
      </section>
      <section aria-labelledby="apps">
      <h2 id="apps">Apps</h2>
      \(apps.isEmpty ? "<p>No app uses any space.</p>" : apps.joined(separator: "\n"))
      \(more)</section>
      </main>
      <footer><p>\(utcText(time))</p></footer>
      </body>
      </html>

      """
  }

  // MARK: Parts

  private static func disk(_ report: StorageReport) -> String {
    let space = report.available
    let apps = min(report.used.total, space.used)
    return segment("apps", apps, of: space.total) + segment("rest", space.used - apps, of: space.total)
  }

  private static func app(
    _ item: StorageReport.Item, most: Int64, _ withUsers: Bool, _ time: Int64
  ) -> String {
    let total = item.sizes.total
    let user = withUsers ? " <span class=\"user\">\(escaped(item.userWords))</span>" : ""
    let rows = item.sizes.largest.map { part, bytes in
      "<tr><th scope=\"row\">\(escaped(part.words))</th><td>\(bytes.asSize)</td>"
        + "<td class=\"share\"><span class=\"bar\" aria-hidden=\"true\">"
        + "\(segment("apps", bytes, of: total))</span></td></tr>"
    }
    let advice = item.advice.map { advice in
      let examples = advice.examples.map { "<li><code>\(escaped($0))</code></li>" }.joined()
      return "<li>\(escaped(advice.words)).\(examples.isEmpty ? "" : "<ul>\(examples)</ul>")</li>"
    }
    let facts = [
      item.isInstalled ? nil : "No app with this identifier is installed.",
      item.isRunning ? "It is running." : item.lastRun.map { "It ran last at \(utcText($0))." },
      item.purgeable > 0 ? "A purge would free \(item.purgeable.asSize)." : nil,
      item.wasMeasuredBefore(time).map { "These sizes are those of \(utcText($0))." },
      item.isComplete ? nil : "Not everything could be counted: the sizes are at least these.",
    ].compactMap(\.self)
    return """
      <details>
      <summary><span class="name">\(escaped(item.name))</span>\(user) \
      <span class="size">\(total.asSize)</span>\
      <span class="bar" aria-hidden="true">\(segment("apps", total, of: most))</span></summary>
      <p class="identifier"><code>\(escaped(item.app))</code></p>
      <table>
      <caption>What \(escaped(item.name)) uses</caption>
      <thead><tr><th scope="col">Part</th><th scope="col">Size</th><th scope="col">Share</th></tr></thead>
      <tbody>
      \(rows.joined(separator: "\n"))
      </tbody>
      </table>
      \(facts.isEmpty ? "" : "<p>\(facts.joined(separator: " "))</p>")
      \(advice.isEmpty ? "" : "<h3>Advice</h3>\n<ul>\n\(advice.joined(separator: "\n"))\n</ul>")
      </details>
      """
  }

  private static func segment(_ kind: String, _ bytes: Int64, of whole: Int64) -> String {
    "<span class=\"\(kind)\" style=\"width:\(percent(bytes, of: whole))%\"></span>"
  }

  private static func percent(_ bytes: Int64, of whole: Int64) -> Int { bytes.share(of: whole, in: 100) }

  /// A text that is nothing but text to a browser, and shows nothing else than it says.
  static func escaped(_ text: String) -> String {
    var escaped = ""
    for scalar in text.sanitized.unicodeScalars {
      switch scalar {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\"": escaped += "&quot;"
      case "'": escaped += "&#39;"
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }

  // MARK: How it looks

  private static let style = """
    :root {
      --page: #f2f2f7; --card: #ffffff; --text: #1c1c1e; --quiet: #55555c; --line: #c6c6cc;
      --apps: #0060c8; --rest: #6e6e76; --free: #e0e0e6;
    }
    @media (prefers-color-scheme: dark) {
      :root {
        --page: #111113; --card: #1f1f22; --text: #f2f2f7; --quiet: #b4b4bc; --line: #48484c;
        --apps: #4da3ff; --rest: #98989f; --free: #3a3a3e;
      }
    }
    body { margin: 0; background: var(--page); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }
    main, footer { max-width: 44rem; margin: 0 auto; padding: 1rem; }
    section, details { background: var(--card); border-radius: .75rem; padding: 1rem; margin: 0 0 1rem; }
    details { border: 1px solid var(--line); margin: 0 0 .5rem; padding: .5rem 1rem; }
    h1 { font-size: 2rem; margin: .5rem 0; } h2 { font-size: 1.25rem; margin: 0 0 .5rem; }
    h3 { font-size: 1rem; margin: .5rem 0 0; }
    summary { cursor: pointer; padding: .25rem; } main { overflow-wrap: anywhere; }
    summary:focus-visible { outline: 3px solid var(--apps); outline-offset: 2px; border-radius: .25rem; }
    .name { font-weight: 600; } .user, .identifier, footer { color: var(--quiet); }
    .size { float: right; } summary .bar { clear: both; margin-top: .25rem; }
    .bar { display: flex; height: .5rem; border-radius: .25rem; overflow: hidden; background: var(--free); }
    .bar.disk { height: 1.5rem; } .bar .apps, .key.apps { background: var(--apps); }
    .bar .rest, .key.rest { background: var(--rest); } .key.free { background: var(--free); }
    .key { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem; }
    .key { border: 1px solid var(--quiet); }
    .legend { list-style: none; padding: 0; } td { white-space: nowrap; } li ul { padding-left: 1rem; }
    table { width: 100%; border-collapse: collapse; } caption { text-align: left; color: var(--quiet); }
    th, td { text-align: left; font-weight: normal; padding: .2rem .5rem .2rem 0; } .share { width: 40%; }
    thead th { color: var(--quiet); border-bottom: 1px solid var(--line); }
    """
}

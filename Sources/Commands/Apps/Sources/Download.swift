// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy

/// Fetches files from servers, by curl.
///
/// curl reads what strangers send. Root's runs as nobody, with nothing of the environment that root was
/// called with; anybody's reads no configuration, follows few redirections and none to anything but http and
/// https, and writes into a pipe: how much is taken from there is our business.
struct Download {
  private let context: Context

  init(_ context: Context) { self.context = context }

  /// Fetches what is at an address into a file without a name; more than `limit` bytes are refused.
  func fetch(_ address: String, limit: Int64) throws -> OwnedFD {
    let file = try unnamedFile()
    let output = try pipe()
    let errors = try pipe()
    let pid: Int32
    do throws(Errno) {
      pid = try Subprocess.spawn(
        words(address, limit)[0], words(address, limit), withOwnEnvironment,
        descriptors: [(output.write.fd, STDOUT_FILENO), (errors.write.fd, STDERR_FILENO)])
    } catch {
      throw CommandFailure(
        error,
        "can't start \(context.curl) to fetch \(address) (\(error.message)); install curl, or copy the files "
          + "and give their directory")
    }
    let arriving = output.takeRead()
    let complaints = errors.takeRead()
    var count: Int64 = 0
    var failure: Errno?
    do throws(Errno) {
      while let bytes = try arriving.fd.readAvailable(limit: 1 << 18), count <= limit {
        count += Int64(bytes.count)
        if count <= limit { try file.fd.writeAll(bytes) }
      }
    } catch {
      failure = error
    }
    if failure != nil || count > limit { kill(pid, SIGKILL) }
    let words = (try? complaints.fd.readToEnd(limit: 4096)) ?? []
    let end = try Subprocess.wait(pid)
    if let failure { throw CommandFailure(failure, "can't keep what \(address) has: \(failure.message)") }
    guard count <= limit else {
      throw CommandFailure(
        .failed, "\(address) is longer than the \(limit) bytes that it should have at most")
    }
    guard end == .exited(0) else {
      let why =
        String(decoding: words, as: UTF8.self).parts(between: "\n").last.map(String.init) ?? "no reason"
      throw CommandFailure(.failed, "can't fetch \(address): \(why)".sanitized)
    }
    guard lseek(file.fd.raw, 0, SEEK_SET) == 0 else { throw Errno.EIO }
    return file
  }

  private func words(_ address: String, _ limit: Int64) -> [String] {
    let isSafe = address.hasPrefix("https:")
    let curl = [
      context.curl, "-q", "--silent", "--show-error", "--fail", "--globoff", "--location", "--max-redirs",
      "5",
      "--proto", "=http,https", "--proto-redir", isSafe ? "=https" : "=http,https", "--connect-timeout", "30",
      "--speed-limit", "1000", "--speed-time", "30", "--max-time", "7200", "--max-filesize", "\(limit)",
      "--output", "-", "--url", address,
    ]
    guard context.isRoot else { return curl }
    return [
      "/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs",
      "--inh-caps=-all", "--bounding-set=-all", "--pdeathsig=KILL", "--",
    ] + curl
  }

  /// What curl may know; of root's environment nothing.
  private var withOwnEnvironment: Context {
    var copy = context
    var values = ["PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C"]
    let known = [
      "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
      "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE",
    ]
    if !context.isRoot { for name in known { values[name] = context.environment[name] } }
    copy.environment = values
    return copy
  }

  private func unnamedFile() throws(CommandFailure) -> OwnedFD {
    let place = context.unpackingDirectory
    do throws(Errno) {
      let directory = try FD.cwd.openFollowing(place, O_RDONLY | O_DIRECTORY)
      do throws(Errno) { return try directory.fd.openUnnamed(O_RDWR, mode: 0o600) } catch {
        // Not every filesystem has files without names.
        guard [.EOPNOTSUPP, .EISDIR, .EINVAL].contains(error) else { throw error }
        let name = ".insula-fetch-\(UUIDText.random())"
        return try name.withName { (name) throws(Errno) in
          let file = try directory.fd.open(name, O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
          try directory.fd.remove(name, directory: false)
          return file
        }
      }
    } catch {
      throw CommandFailure(
        error, "can't fetch into \(place): \(error.message); TMPDIR can name another directory for it")
    }
  }
}

import FreshetConfiguration
import Glibc

/// The options of the daemon, from the command line and the environment.
package struct DaemonOptions: Sendable {
    /// The directories of `--config-dir`, highest priority first; empty: the search path of the environment.
    package var configurationDirectories: [String] = []
    /// Configuration files that are read from a copy, for an edit that is not installed yet. Keys are the paths that
    /// the files will have.
    package var copies: [String: String] = [:]
    /// The contents of `copies`, read with the rights of the user who started the process.
    private(set) var copiedContents: [String: Result<FileContent, FileError>] = [:]
    /// The files of a configuration directory that root named; nil: files are read when they are needed.
    private(set) var recordedFiles: RecordedFileSystem?
    /// The rules of polkit, for a check; nil: they were not read.
    private(set) var polkitRules: PolkitRules?
    /// A connection to polkit with root's rights, for a check; nil: this process was not started by root.
    private(set) var polkitAuthority: PolkitAuthority?
    /// The user of `--user`; nil: the owner of the state directory, or `freshet`.
    package var user: String?
    /// The effective user of the process when it started. A process of root changes its user before it works, and is
    /// nevertheless the system's service.
    package let invoker: UInt32
    /// The state directory. Like the following two, it overrides systemd's variables and the defaults.
    package var stateDirectory: String?
    package var cacheDirectory: String?
    package var runtimeDirectory: String?
    /// The control socket; nil: `io.freshet.Control` in the runtime directory.
    package var socket: String?
    /// A level of swift-log, such as `debug`.
    package var logLevel = "info"
    /// Runs pipelines once, then ends.
    package var once = false
    /// The pipelines that `once` runs; empty: all pipelines.
    package var onceNames: [String] = []
    /// The environment variables of the process.
    package var environment: [String: String] = [:]

    package init(invoker: UInt32 = geteuid()) {
        self.invoker = invoker
    }

    /// The user whose directories are used. It is 0 (the system's directories) for root and for the owner of the
    /// system's state directory, which is the service's user.
    var owner: UInt32 {
        var status = stat()
        guard invoker != 0, stat("/var/lib/freshet", &status) == 0, status.st_uid == invoker else { return invoker }
        return 0
    }

    /// Reads files that perhaps only root can read: `copies`, and for a check or a dry run the directories of
    /// `--config-dir` and the rules of polkit. The system's own directories are read later, because the service's user
    /// has to be able to read them. Blocks.
    mutating func readFiles(for work: DaemonEntry.Work) {
        copiedContents = copies.mapValues(SubstitutingFileSystem.copy(of:))
        if work == .reading { polkitRules = PolkitRules() }
        let path = ConfigurationLocation.searchPath(self)
        guard work == .reading, invoker == 0, !configurationDirectories.isEmpty, !path.isSystemPath else { return }
        recordedFiles = RecordedFileSystem(ConfigurationLocation.fileSystem(self), at: path)
    }

    /// Prepares questions to polkit for a check of root's. Call it as root, before any thread starts.
    package mutating func preparePolkitAuthority() {
        if invoker == 0 { polkitAuthority = PolkitAuthority() }
    }

    /// Makes a path absolute, because hooks and readers have other working directories.
    ///
    /// - Parameter path: a path from the command line; a relative path is relative to the working directory.
    package static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let here = getcwd(nil, 0) else { return path }
        defer { free(here) }
        let directory = String(cString: here)
        return directory == "/" ? "/\(path)" : "\(directory)/\(path)"
    }
}

/// The exit statuses of `freshetd`, from sysexits(3) where they fit.
package enum DaemonExit: Int32, Sendable, CaseIterable {
    case success = 0
    /// A failure after which another attempt may succeed.
    case failure = 1
    /// The copy would change (only for a dry run with `--detailed-exitcode`).
    case wouldChange = 2
    /// The command line is wrong.
    case usage = 64
    /// The origin or a budget permits no request yet, or another process uses the cache (EX_TEMPFAIL).
    case tryLater = 75
    /// The system refused an operation (EX_NOPERM).
    case notPermitted = 77
    /// The configuration has errors; another attempt does not help (EX_CONFIG).
    case configuration = 78
}

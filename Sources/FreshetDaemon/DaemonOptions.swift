import FreshetConfiguration
import Glibc

/// What the command line and the environment say of a daemon.
package struct DaemonOptions: Sendable {
    /// The directories of `--config-dir`, the highest first; empty: the search path of the environment.
    package var configurationDirectories: [String] = []
    /// Files of the configuration that are read from elsewhere, by the paths that they will have: an edit before it is
    /// installed.
    package var copies: [String: String] = [:]
    /// The contents of `copies`, read with the rights of whoever started the process.
    private(set) var copiedContents: [String: Result<FileContent, FileError>] = [:]
    /// The files of a draft that root named; nil: files are read when they are needed.
    private(set) var recordedFiles: RecordedFileSystem?
    /// The user of `--user`; nil: the owner of the state directory, or `freshet`.
    package var user: String?
    /// The effective user of the process when it started. Root's process becomes another user's before it works, and is the
    /// system's service nevertheless.
    package let invoker: UInt32
    /// Each overrides what systemd's variables, and then the defaults, say.
    package var stateDirectory: String?
    package var cacheDirectory: String?
    package var runtimeDirectory: String?
    /// The control socket; nil: `io.freshet.Control` in the runtime directory.
    package var socket: String?
    /// A level of swift-log, such as `debug`.
    package var logLevel = "info"
    /// Runs pipelines once, and ends.
    package var once = false
    /// The pipelines that `once` is about; empty: all of them.
    package var onceNames: [String] = []
    /// The process's environment.
    package var environment: [String: String] = [:]

    package init(invoker: UInt32 = geteuid()) {
        self.invoker = invoker
    }

    /// The user whose directories count, 0 for those of the system: root's, and those of the user who owns the system's
    /// state directory and so is the service.
    var owner: UInt32 {
        var status = stat()
        guard invoker != 0, stat("/var/lib/freshet", &status) == 0, status.st_uid == invoker else { return invoker }
        return 0
    }

    /// Reads what only root may be able to read: `copies`, and for a check or a dry run the directories of `--config-dir`.
    /// The system's own directories are left to the service's user, who has to be able to read them. Blocks.
    mutating func readFiles(for work: DaemonEntry.Work) {
        copiedContents = copies.mapValues(SubstitutingFileSystem.copy(of:))
        let path = Supervisor.searchPath(self)
        guard work == .reading, invoker == 0, !configurationDirectories.isEmpty, !path.isSystems else { return }
        recordedFiles = RecordedFileSystem(Supervisor.fileSystem(self), at: path)
    }

    /// A directory by its whole path, as it is told to others: hooks and readers stand elsewhere.
    ///
    /// - Parameter path: of the command line; one that does not begin with `/` is meant from where the process stands.
    package static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let here = getcwd(nil, 0) else { return path }
        defer { free(here) }
        let directory = String(cString: here)
        return directory == "/" ? "/\(path)" : "\(directory)/\(path)"
    }
}

/// How `freshetd` ends: sysexits(3), as far as they fit.
package enum DaemonExit: Int32, Sendable, CaseIterable {
    case success = 0
    /// Something failed that may succeed next time.
    case failure = 1
    /// A dry run that was asked to say so would have changed the copy.
    case wouldChange = 2
    /// The command line is wrong.
    case usage = 64
    /// The origin or a budget asks for patience, or another process is at work (EX_TEMPFAIL).
    case tryLater = 75
    /// The system does not permit it (EX_NOPERM).
    case notPermitted = 77
    /// The configuration is wrong: trying again does not help.
    case configuration = 78
}

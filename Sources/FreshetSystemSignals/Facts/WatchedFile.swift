public import FreshetEventLoop
public import FreshetSignals
import Glibc

/// A file or directory, and when it changes.
///
/// ```swift
/// for await _ in WatchedFile(at: "/etc/hosts").signal { reload() }
/// ```
///
/// It is a description, and costs nothing. The directories of the path are watched (inotify) while there is an
/// iteration of `changes` or a subscription to `signal`, once for all of them (``FileMonitor``). See <doc:Facts> for
/// the properties that all sources share.
///
/// **Availability.** The file need not exist yet, nor the directories of its path. If changes cannot be detected,
/// ``FileFact/obstacle`` shows why and how to repair it, and the monitor retries.
public struct WatchedFile: Sendable {
    /// The absolute path.
    public let path: String
    private let host: SourceHost

    /// - Parameters:
    ///   - path: The path; a relative one begins at the current working directory.
    ///   - loop: The event loop to use; nil: the library's own thread.
    public init(at path: String, on loop: EventLoop? = nil) {
        self.init(at: path, in: SourceHost(loop))
    }

    init(at path: String, in host: SourceHost) {
        self.path = path.hasPrefix("/") ? path : "\(Self.workingDirectory)/\(path)"
        self.host = host
    }

    /// The current fact, then each change; a slow reader gets the newest.
    public var changes: some AsyncSequence<FileFact, Never> & Sendable {
        host.facts { [path] sources in
            let monitor = sources.files()
            let watch = monitor.watch(path)
            return (watch.current, [monitor, watch] as [any Sendable])
        } otherwise: { [path] reason in
            FileFact(exists: access(path, F_OK) == 0, obstacle: reason)
        }
    }

    /// The file was written and closed, replaced, created or removed; or an entry of the directory was.
    public var signal: Signal {
        host.signal { [path] sources in
            let monitor = sources.files()
            let watch = monitor.watch(path)
            return (watch.signal, [monitor, watch] as [any Sendable])
        }
    }

    private static var workingDirectory: String {
        guard let directory = getcwd(nil, 0) else { return "" }  // it was removed, so it has no entries
        defer { free(directory) }
        return String(cString: directory)
    }
}

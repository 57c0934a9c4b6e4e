public import FreshetEventLoop
public import FreshetSignals
import Glibc

/// A file or directory, and when it changes: in a line, for any program.
///
/// ```swift
/// for await _ in WatchedFile(at: "/etc/hosts").signal { reload() }
/// ```
///
/// It is a description, and costs nothing. The way to the file is watched (inotify) while somebody iterates `changes`
/// or is subscribed to `signal`, once for all who do (``FileMonitor``). See <doc:Facts> for what all of these have in
/// common.
///
/// **What is missing.** Nothing has to exist yet, the directories on the way included. If changes cannot be noticed,
/// ``FileFact/obstacle`` says why and what helps, and it is tried again.
public struct WatchedFile: Sendable {
    /// The absolute path.
    public let path: String
    private let place: SourceHost

    /// - Parameters:
    ///   - path: a relative one begins at the present working directory.
    ///   - loop: where the kernel is listened to; nil: on the library's own thread.
    public init(at path: String, on loop: EventLoop? = nil) {
        self.init(at: path, in: SourceHost(loop))
    }

    init(at path: String, in place: SourceHost) {
        self.path = path.hasPrefix("/") ? path : "\(Self.workingDirectory)/\(path)"
        self.place = place
    }

    /// The present fact first, then each change of it; a slow reader gets the newest.
    public var changes: some AsyncSequence<FileFact, Never> & Sendable {
        place.facts { [path] sources in
            let monitor = sources.files()
            let watch = monitor.watch(path)
            return (watch.current, [monitor, watch] as [any Sendable])
        } otherwise: { [path] reason in
            FileFact(exists: access(path, F_OK) == 0, obstacle: reason)
        }
    }

    /// What is there changed: it was written and closed, replaced, created or removed; of a directory, an entry was.
    public var signal: Signal {
        place.signal { [path] sources in
            let monitor = sources.files()
            let watch = monitor.watch(path)
            return (watch.signal, [monitor, watch] as [any Sendable])
        }
    }

    private static var workingDirectory: String {
        guard let directory = getcwd(nil, 0) else { return "" }  // it was removed: nothing is in it
        defer { free(directory) }
        return String(cString: directory)
    }
}

import FreshetEventLoop
import Glibc
import Synchronization

/// Reports published files that were removed or renamed by another program: inotify(7) on the directory of the
/// published files, and on the directories above it, because a rename of one of them moves all files away.
///
/// A commit replaces a published file and is not reported. A withdrawal removes the file and is reported, too: the
/// handler checks the state of the pipeline. inotify(7) does not report a file system that is mounted over one of the
/// directories; ``renew()`` detects it.
final class PublishedFileWatch: Sendable {
    /// What has been removed.
    enum Removal: Hashable, Sendable {
        case files(Set<String>)
        /// The directory itself, or more files than the kernel could report.
        case unknown

        /// The maximum number of names. With more, it costs less to look for all files.
        private static let mostNames = 4096

        /// Adds what was removed later.
        mutating func add(_ other: Removal) {
            guard case (.files(var names), .files(let more)) = (self, other) else { return self = .unknown }
            names.formUnion(more)
            self = names.count > Self.mostNames ? .unknown : .files(names)
        }
    }

    /// The watches of the current directories. They are replaced together.
    private struct Watches {
        var directory: Int32
        /// Which directory is watched.
        var identity: DirectoryIdentity
        var ancestors: Set<Int32>

        func contains(_ watch: Int32) -> Bool { watch == directory || ancestors.contains(watch) }
    }

    private static let events: InotifyEvents = [.removed, .movedAway, .selfMoved, .onlyDirectory]
    private static let ancestorEvents: InotifyEvents = [.selfMoved, .onlyDirectory]
    /// The maximum number of event buffers to read in one iteration of the loop.
    private static let readsPerIteration = 4

    private let directory: String
    private let inotify: InotifyDescriptor
    private let handler: @Sendable (Removal) -> Void
    /// Nil: one of the directories was removed or renamed, and none is watched.
    private let watches: Mutex<Watches?>
    private let descriptorWatch = Mutex<DescriptorWatch?>(nil)

    /// - Parameters:
    ///   - loop: Waits for the changes.
    ///   - directory: The directory of the published files, an absolute path.
    ///   - handler: Called once for the events that come together, on the loop's thread; and by ``renew()``.
    init(
        _ loop: EventLoop, directory: String, _ handler: @escaping @Sendable (Removal) -> Void
    ) throws(SystemCallError) {
        self.directory = directory
        self.handler = handler
        inotify = try InotifyDescriptor()
        watches = Mutex(try Self.watch(directory, inotify))
        let watch = try loop.watch(inotify.rawValue, for: .read) { [weak self] _ in self?.read() }
        descriptorWatch.withLock { $0 = watch }
    }

    /// Watches the directories again if one of them is not the watched one any more, and creates the directory if the
    /// directory above exists. Files that were removed meanwhile are reported as ``Removal/unknown``, also if there is no
    /// directory to watch now. May be called from any thread.
    func renew() {
        let hasChanged = watches.withLock { watches in
            let wasWatched = watches != nil
            if let old = watches {
                guard DirectoryIdentity(of: directory) != old.identity else { return false }
                end(old)
            }
            mkdir(directory, 0o755)
            watches = try? Self.watch(directory, inotify)
            return wasWatched || watches != nil
        }
        if hasChanged { handler(.unknown) }
    }

    /// Whether the directory is watched. Otherwise ``renew()`` tries again.
    var isWatching: Bool { watches.withLock { $0 != nil } }

    /// The directories above are watched first: if one of them is renamed meanwhile, that is reported.
    private static func watch(_ directory: String, _ inotify: InotifyDescriptor) throws(SystemCallError) -> Watches {
        // An ancestor that may not be read cannot be watched; renew() detects its rename.
        let ancestors = Set(Self.ancestors(of: directory).compactMap { try? inotify.add($0, for: ancestorEvents) })
        let number = try inotify.add(directory, for: events)
        guard let identity = DirectoryIdentity(of: directory) else {
            throw SystemCallError("stat", errno: errno, subject: directory)
        }
        return Watches(directory: number, identity: identity, ancestors: ancestors)
    }

    /// The paths of the directories above, without that of the root, which cannot be renamed.
    static func ancestors(of directory: String) -> [String] {
        var path = directory[...]
        var ancestors: [String] = []
        while let slash = path.lastIndex(of: "/"), slash > path.startIndex {
            path = path[..<slash]
            ancestors.append(String(path))
        }
        return ancestors
    }

    private func end(_ watches: Watches) {
        for watch in watches.ancestors { inotify.remove(watch) }
        inotify.remove(watches.directory)
    }

    private func read() {
        var names: Set<String> = []
        var isIncomplete = false
        inotify.read(atMost: Self.readsPerIteration) { event in
            // The file of a commit is renamed from a temporary name, which begins with a dot; a published file does not.
            if let name = event.name, !name.hasPrefix(".") { names.insert(name) }
            if event.events.contains(.overflowed) { isIncomplete = true }
            guard event.events.contains(.selfMoved) || event.events.contains(.ended) else { return }
            let isCurrent = watches.withLock { watches in
                guard let current = watches, current.contains(event.watch) else { return false }
                end(current)
                watches = nil
                return true
            }
            if isCurrent { isIncomplete = true }
        }
        if isIncomplete { handler(.unknown) } else if !names.isEmpty { handler(.files(names)) }
    }

    deinit { descriptorWatch.withLock { $0?.cancel() } }
}

/// Which directory a path leads to.
private struct DirectoryIdentity: Hashable {
    let device: dev_t
    let inode: ino_t

    /// Nil: there is no such directory; `errno` says why.
    init?(of path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        (device, inode) = (status.st_dev, status.st_ino)
    }
}

import FreshetEventLoop
import Glibc
import Synchronization

/// Reports published files that were removed or renamed by another program: inotify(7) on the directory of the
/// published files.
///
/// A commit replaces a published file and is not reported. A withdrawal removes the file and is reported, too: the
/// handler checks the state of the pipeline.
final class PublishedFileWatch: Sendable {
    /// What has been removed.
    enum Removal: Hashable, Sendable {
        case files(Set<String>)
        /// The directory itself, or more files than the kernel could report.
        case unknown
    }

    private static let events: InotifyEvents = [.removed, .movedAway, .selfMoved, .onlyDirectory]
    /// The maximum number of event buffers to read in one iteration of the loop.
    private static let readsPerIteration = 4

    private let directory: String
    private let inotify: InotifyDescriptor
    private let handler: @Sendable (Removal) -> Void
    /// The number of the watch; nil: the directory was removed or renamed, and is not watched.
    private let number: Mutex<Int32?>
    private let descriptorWatch = Mutex<DescriptorWatch?>(nil)

    /// - Parameters:
    ///   - loop: Waits for the changes.
    ///   - directory: The directory of the published files.
    ///   - handler: Called once for the events that come together, on the loop's thread; and by ``renew()``.
    init(
        _ loop: EventLoop, directory: String, _ handler: @escaping @Sendable (Removal) -> Void
    ) throws(SystemCallError) {
        self.directory = directory
        self.handler = handler
        inotify = try InotifyDescriptor()
        number = Mutex(try inotify.add(directory, for: Self.events))
        let watch = try loop.watch(inotify.rawValue, for: .read) { [weak self] _ in self?.read() }
        descriptorWatch.withLock { $0 = watch }
    }

    /// Watches the directory again if it was removed or renamed, and creates it if the directory above exists. Files that
    /// were removed meanwhile are reported as ``Removal/unknown``. May be called from any thread.
    func renew() {
        let isNew = number.withLock { number in
            guard number == nil else { return false }
            mkdir(directory, 0o755)
            number = try? inotify.add(directory, for: Self.events)
            return number != nil
        }
        if isNew { handler(.unknown) }
    }

    private func read() {
        var names: Set<String> = []
        var isIncomplete = false
        inotify.read(atMost: Self.readsPerIteration) { event in
            // The file of a commit is renamed from a temporary name, which begins with a dot; a published file does not.
            if let name = event.name, !name.hasPrefix(".") { names.insert(name) }
            if event.events.contains(.overflowed) { isIncomplete = true }
            if event.events.contains(.selfMoved) { inotify.remove(event.watch) }
            guard event.events.contains(.selfMoved) || event.events.contains(.ended) else { return }
            let isCurrent = number.withLock { number in
                guard number == event.watch else { return false }
                number = nil
                return true
            }
            if isCurrent { isIncomplete = true }
        }
        if isIncomplete { handler(.unknown) } else if !names.isEmpty { handler(.files(names)) }
    }

    deinit { descriptorWatch.withLock { $0?.cancel() } }
}

import FreshetEventLoop

/// Reports published files that were removed or renamed by another program: inotify(7) on the directory of the
/// published files.
///
/// A commit replaces a published file and is not reported. A withdrawal removes the file and is reported, too: the
/// handler checks the state of the pipeline.
final class PublishedFileWatch: Sendable {
    /// What has been removed.
    enum Removal: Hashable, Sendable {
        case files(Set<String>)
        /// The directory itself, or more files than the kernel could report. After the removal of the directory, nothing
        /// more is reported.
        case unknown(directoryIsGone: Bool)
    }

    /// The maximum number of event buffers to read in one iteration of the loop.
    private static let readsPerIteration = 4

    private let watch: DescriptorWatch

    /// - Parameters:
    ///   - loop: Waits for the changes.
    ///   - directory: The directory of the published files.
    ///   - handler: Called on the loop's thread, once for the events that come together.
    init(
        _ loop: EventLoop, directory: String, _ handler: @escaping @Sendable (Removal) -> Void
    ) throws(SystemCallError) {
        let inotify = try InotifyDescriptor()
        try inotify.add(directory, for: [.removed, .movedAway, .onlyDirectory])
        watch = try loop.watch(inotify.rawValue, for: .read) { _ in
            var names: Set<String> = []
            var (isGone, isIncomplete) = (false, false)
            inotify.read(atMost: Self.readsPerIteration) { event in
                if let name = event.name { names.insert(name) }
                if event.events.contains(.overflowed) { isIncomplete = true }
                if event.events.contains(.ended) { isGone = true }
            }
            // The file of a commit is renamed from a temporary name, which begins with a dot; a published file does not.
            names = names.filter { !$0.hasPrefix(".") }
            if isGone || isIncomplete {
                handler(.unknown(directoryIsGone: isGone))
            } else if !names.isEmpty {
                handler(.files(names))
            }
        }
    }

    deinit { watch.cancel() }
}

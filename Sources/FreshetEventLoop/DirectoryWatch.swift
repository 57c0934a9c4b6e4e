/// Reports that names were removed from a directory, or renamed into or out of it: inotify(7) on a loop.
///
/// It reports only the fact of a change: the handler has to check the names. Events that come together are reported
/// once. The removal of the directory itself is reported, and nothing after it.
public final class DirectoryWatch: Sendable {
    /// The maximum number of event buffers to read in one iteration of the loop.
    static let readsPerIteration = 4

    private let watch: DescriptorWatch

    /// - Parameters:
    ///   - loop: Waits for the changes.
    ///   - path: The directory.
    ///   - handler: Called on the loop's thread.
    public init(
        _ loop: EventLoop, path: String, _ handler: @escaping @Sendable () -> Void
    ) throws(SystemCallError) {
        let inotify = try InotifyDescriptor()
        try inotify.add(path, for: [.removed, .movedAway, .movedHere, .selfRemoved, .selfMoved, .onlyDirectory])
        watch = try loop.watch(inotify.rawValue, for: .read) { _ in
            inotify.read(atMost: Self.readsPerIteration) { _ in }
            handler()
        }
    }

    deinit { watch.cancel() }
}

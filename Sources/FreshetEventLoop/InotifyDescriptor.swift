import CLinux
import Glibc

/// Events and options of inotify(7).
public struct InotifyEvents: OptionSet, Hashable, Sendable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// A file that was open for writing was closed (IN_CLOSE_WRITE).
    public static let written = InotifyEvents(rawValue: UInt32(IN_CLOSE_WRITE))
    /// A name was created (IN_CREATE).
    public static let created = InotifyEvents(rawValue: UInt32(IN_CREATE))
    /// A name was removed (IN_DELETE).
    public static let removed = InotifyEvents(rawValue: UInt32(IN_DELETE))
    /// A name was renamed away (IN_MOVED_FROM).
    public static let movedAway = InotifyEvents(rawValue: UInt32(IN_MOVED_FROM))
    /// A name was renamed to this one, perhaps replacing another file (IN_MOVED_TO).
    public static let movedHere = InotifyEvents(rawValue: UInt32(IN_MOVED_TO))
    /// The watched file or directory was removed (IN_DELETE_SELF).
    public static let selfRemoved = InotifyEvents(rawValue: UInt32(IN_DELETE_SELF))
    /// The watched file or directory was renamed; it stays watched (IN_MOVE_SELF).
    public static let selfMoved = InotifyEvents(rawValue: UInt32(IN_MOVE_SELF))

    // Events that are always reported.

    /// The watch has ended (IN_IGNORED).
    public static let ended = InotifyEvents(rawValue: UInt32(IN_IGNORED))
    /// The file system was unmounted (IN_UNMOUNT).
    public static let unmounted = InotifyEvents(rawValue: UInt32(IN_UNMOUNT))
    /// Events were lost: the queue was full (fs.inotify.max_queued_events; IN_Q_OVERFLOW).
    public static let overflowed = InotifyEvents(rawValue: UInt32(IN_Q_OVERFLOW))

    // Options of a watch.

    /// Fail if the path is not a directory (IN_ONLYDIR).
    public static let onlyDirectory = InotifyEvents(rawValue: UInt32(IN_ONLYDIR))
    /// Do not follow a symbolic link at the end of the path (IN_DONT_FOLLOW).
    public static let withoutFollowing = InotifyEvents(rawValue: UInt32(IN_DONT_FOLLOW))
    /// Add these events to an existing watch (IN_MASK_ADD).
    public static let additionally = InotifyEvents(rawValue: UInt32(IN_MASK_ADD))
    /// Ignore names after their removal (IN_EXCL_UNLINK).
    public static let notUnlinked = InotifyEvents(rawValue: UInt32(IN_EXCL_UNLINK))
}

/// One event of inotify(7).
public struct InotifyEvent: Hashable, Sendable {
    /// The number of the watch, from ``InotifyDescriptor/add(_:for:)``; negative for an overflow.
    public var watch: Int32
    public var events: InotifyEvents
    /// The name in the watched directory; nil if the event is about the directory itself.
    public var name: String?

    /// Makes an event, for tests.
    public init(_ watch: Int32, _ events: InotifyEvents, name: String? = nil) {
        self.watch = watch
        self.events = events
        self.name = name
    }

    /// `struct inotify_event` without its name: watch, mask, cookie, length of the name.
    static let headerSize = 16

    /// Parses the result of one read: whole events (inotify(7)). Events after a damaged one are ignored.
    static func parse(_ bytes: UnsafeRawBufferPointer, _ body: (InotifyEvent) -> Void) {
        var offset = 0
        while bytes.count - offset >= headerSize {
            let watch = bytes.loadUnaligned(fromByteOffset: offset, as: Int32.self)
            let mask = bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
            let length = Int(bytes.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self))
            let end = offset + headerSize + length
            guard end <= bytes.count else { return }
            // The name is padded with NUL bytes.
            let name = bytes[(offset + headerSize)..<end].prefix { $0 != 0 }
            body(
                InotifyEvent(
                    watch, InotifyEvents(rawValue: mask),
                    name: name.isEmpty ? nil : String(decoding: name, as: UTF8.self)))
            offset = end
        }
    }
}

/// An inotify(7) descriptor: any number of watches, one stream of events. Watch it with an ``EventLoop`` for reading.
///
/// It may be used from any thread; each event is read once, by the first reader.
public final class InotifyDescriptor: Sendable {
    /// The buffer size of one read: some hundred events. An event has at most 272 bytes.
    static let bufferSize = 16_384

    private let descriptor: OwnedDescriptor

    /// - Throws: EMFILE if the user has reached fs.inotify.max_user_instances, or the process its limit of descriptors.
    public init() throws(SystemCallError) {
        descriptor = try OwnedDescriptor(inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK)), of: "inotify_init1")
    }

    /// The descriptor, to be watched for reading.
    public var rawValue: Int32 { descriptor.rawValue }

    /// Watches the file or directory at a path. Two paths of the same file or directory share one watch.
    ///
    /// - Returns: The number of the watch. The kernel does not reuse the number of an ended watch soon.
    /// - Throws: EACCES if the file may not be read, ENOSPC if the user has reached fs.inotify.max_user_watches.
    @discardableResult
    public func add(_ path: String, for events: InotifyEvents) throws(SystemCallError) -> Int32 {
        let watch = inotify_add_watch(descriptor.rawValue, path, events.rawValue)
        guard watch >= 0 else { throw SystemCallError("inotify_add_watch", errno: errno, subject: path) }
        return watch
    }

    /// Ends a watch. It has no effect if the watch has already ended.
    public func remove(_ watch: Int32) {
        inotify_rm_watch(descriptor.rawValue, watch)
    }

    /// Reads available events, at most this many buffers. If there are more, the descriptor stays ready.
    public func read(atMost reads: Int, _ body: (InotifyEvent) -> Void) {
        withUnsafeTemporaryAllocation(byteCount: Self.bufferSize, alignment: 8) { buffer in
            for _ in 0..<reads {
                let count = Glibc.read(descriptor.rawValue, buffer.baseAddress, buffer.count)
                guard count > 0 else { return }
                InotifyEvent.parse(UnsafeRawBufferPointer(rebasing: buffer[..<count]), body)
            }
        }
    }
}

import CLinux
import Glibc

/// What inotify(7) is asked for, and what it tells.
public struct InotifyEvents: OptionSet, Hashable, Sendable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// A file that was open for writing was closed (IN_CLOSE_WRITE).
    public static let written = InotifyEvents(rawValue: UInt32(IN_CLOSE_WRITE))
    /// A name was made (IN_CREATE).
    public static let created = InotifyEvents(rawValue: UInt32(IN_CREATE))
    /// A name was removed (IN_DELETE).
    public static let removed = InotifyEvents(rawValue: UInt32(IN_DELETE))
    /// A name left by a rename (IN_MOVED_FROM).
    public static let movedAway = InotifyEvents(rawValue: UInt32(IN_MOVED_FROM))
    /// A name came by a rename, maybe in place of another file (IN_MOVED_TO).
    public static let movedHere = InotifyEvents(rawValue: UInt32(IN_MOVED_TO))
    /// What is watched was itself removed (IN_DELETE_SELF).
    public static let selfRemoved = InotifyEvents(rawValue: UInt32(IN_DELETE_SELF))
    /// What is watched was itself renamed; it stays watched (IN_MOVE_SELF).
    public static let selfMoved = InotifyEvents(rawValue: UInt32(IN_MOVE_SELF))

    // Told without being asked for.

    /// The watch has ended (IN_IGNORED).
    public static let ended = InotifyEvents(rawValue: UInt32(IN_IGNORED))
    /// The file system was unmounted (IN_UNMOUNT).
    public static let unmounted = InotifyEvents(rawValue: UInt32(IN_UNMOUNT))
    /// Events were lost: fs.inotify.max_queued_events waited already (IN_Q_OVERFLOW).
    public static let overflowed = InotifyEvents(rawValue: UInt32(IN_Q_OVERFLOW))

    // How it is asked.

    /// Only a directory may be watched (IN_ONLYDIR).
    public static let onlyDirectory = InotifyEvents(rawValue: UInt32(IN_ONLYDIR))
    /// A path that ends in a symbolic link is not followed there (IN_DONT_FOLLOW).
    public static let withoutFollowing = InotifyEvents(rawValue: UInt32(IN_DONT_FOLLOW))
    /// In addition to what is watched already (IN_MASK_ADD).
    public static let additionally = InotifyEvents(rawValue: UInt32(IN_MASK_ADD))
    /// Names that are removed already say nothing more (IN_EXCL_UNLINK).
    public static let notUnlinked = InotifyEvents(rawValue: UInt32(IN_EXCL_UNLINK))
}

/// One event of inotify(7).
public struct InotifyEvent: Hashable, Sendable {
    /// The number that ``InotifyDescriptor/add(_:for:)`` returned; negative for an overflow.
    public var watch: Int32
    public var events: InotifyEvents
    /// The name in the directory that is watched; nil if it is about the directory itself.
    public var name: String?

    /// Makes an event by hand, as tests do.
    public init(_ watch: Int32, _ events: InotifyEvents, name: String? = nil) {
        self.watch = watch
        self.events = events
        self.name = name
    }

    /// `struct inotify_event` without its name: watch, mask, cookie, length of the name.
    static let headerSize = 16

    /// Takes apart what one read gave: whole events (inotify(7)). What follows a damaged one is left out.
    static func parse(_ bytes: UnsafeRawBufferPointer, _ body: (InotifyEvent) -> Void) {
        var offset = 0
        while bytes.count - offset >= headerSize {
            let watch = bytes.loadUnaligned(fromByteOffset: offset, as: Int32.self)
            let mask = bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
            let length = Int(bytes.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self))
            let end = offset + headerSize + length
            guard end <= bytes.count else { return }
            // The name is padded with NULs.
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
/// It may be used from any thread; the events belong to who reads them first.
public final class InotifyDescriptor: Sendable {
    /// Bytes that one read takes: some hundred events. An event has at most 272.
    static let bufferSize = 16_384

    private let descriptor: OwnedDescriptor

    /// - Throws: EMFILE if the user has fs.inotify.max_user_instances already, or the process no descriptor left.
    public init() throws(SystemCallError) {
        descriptor = try OwnedDescriptor(inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK)), of: "inotify_init1")
    }

    /// The descriptor, to be watched for reading.
    public var rawValue: Int32 { descriptor.rawValue }

    /// Watches what is at a path. Two paths of one file or directory have one watch.
    ///
    /// - Returns: the watch's number. One that has ended is not soon used again.
    /// - Throws: EACCES if it may not be read, ENOSPC if the user has fs.inotify.max_user_watches already.
    @discardableResult
    public func add(_ path: String, for events: InotifyEvents) throws(SystemCallError) -> Int32 {
        let watch = inotify_add_watch(descriptor.rawValue, path, events.rawValue)
        guard watch >= 0 else { throw SystemCallError("inotify_add_watch", errno: errno, subject: path) }
        return watch
    }

    /// Ends a watch; of one that has ended already nothing comes.
    public func remove(_ watch: Int32) {
        inotify_rm_watch(descriptor.rawValue, watch)
    }

    /// Reads what is there, at most as many buffers full as said; then the descriptor is ready again.
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

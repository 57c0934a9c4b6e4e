/// The events of a path since its last check.
struct FileEvents: OptionSet, Hashable, Sendable {
    let rawValue: UInt8

    /// The file was written to and closed.
    static let written = FileEvents(rawValue: 1)
    /// The file's name was created, or another file was renamed to it: the file is another one.
    static let arrived = FileEvents(rawValue: 2)
    /// An entry of the directory was written, created or removed.
    static let entries = FileEvents(rawValue: 4)
    /// A directory on the path changed, or events were lost: the path has to be checked.
    static let look = FileEvents(rawValue: 8)
    /// A watch has ended: the directories of the path have to be watched again.
    static let rewatch = FileEvents(rawValue: 16)
}

/// The change between two checks of a path, given the events in between.
///
/// | before | after | events | change |
/// | --- | --- | --- | --- |
/// | nothing | something | | `created` |
/// | something | nothing | | `removed` |
/// | something | another file or directory | | `replaced` |
/// | a file | the same by its inode | its name was created again | `replaced` |
/// | something | the same | it was written | `written` |
/// | a directory | the same | an entry was written, created or removed | `entriesChanged` |
/// | something | the same with another size or time | events were lost | `written` or `entriesChanged` |
/// | the same | | another event | `minor` |
/// | | | none | `nothing` |
///
/// A write counts even if size and time are unchanged: two writes may have the same time in the file system's clock.
enum FileChange: Hashable, Sendable {
    case created, removed, replaced, written, entriesChanged, minor, nothing

    init(from old: FileSnapshot?, to new: FileSnapshot?, received: FileEvents) {
        switch (old, new) {
        case (nil, nil): self = received.isEmpty ? .nothing : .minor
        case (nil, .some): self = .created
        case (.some, nil): self = .removed
        case (.some(let old), .some(let new)):
            let isAnother = old.identity != new.identity || old.isDirectory != new.isDirectory
            let looksChanged = old != new && !received.isDisjoint(with: [.look, .rewatch])
            if isAnother || received.contains(.arrived) {
                self = .replaced
            } else if received.contains(.written) {
                self = .written
            } else if received.contains(.entries) {
                self = .entriesChanged
            } else if looksChanged {
                self = new.isDirectory ? .entriesChanged : .written
            } else {
                self = received.isEmpty ? .nothing : .minor
            }
        }
    }

    /// The detail of the signal; nil: it does not fire.
    var detail: String? {
        switch self {
        case .created: "created"
        case .removed: "removed"
        case .replaced: "replaced"
        case .written: "written"
        case .entriesChanged: "its entries changed"
        case .minor, .nothing: nil
        }
    }
}

/// What was heard of a path since the last look.
struct FileEvents: OptionSet, Hashable, Sendable {
    let rawValue: UInt8

    /// The file was written to and closed.
    static let written = FileEvents(rawValue: 1)
    /// The file's own name was made or renamed to: whatever is there is another file.
    static let arrived = FileEvents(rawValue: 2)
    /// In the directory at the path something was written, came or went.
    static let entries = FileEvents(rawValue: 4)
    /// Something on the way to it changed, or events were lost: look what is there.
    static let look = FileEvents(rawValue: 8)
    /// A watch has ended: the way is to be watched anew.
    static let rewatch = FileEvents(rawValue: 16)
}

/// What two looks at a path, and what was heard in between, mean.
///
/// | before | after | heard | delta |
/// | --- | --- | --- | --- |
/// | nothing | something | | `created` |
/// | something | nothing | | `removed` |
/// | something | another file or directory | | `replaced` |
/// | a file | the same by its number | its name came anew | `replaced` |
/// | something | the same | it was written to | `written` |
/// | a directory | the same | an entry was written, came or went | `entriesChanged` |
/// | something | the same, of another size or time | events were lost | `written` or `entriesChanged` |
/// | the same | | something else | `minor` |
/// | | | nothing | `nothing` |
///
/// What was written counts whether or not size and time are others: two writes may fall into one tick of the file
/// system's clock.
enum FileChange: Hashable, Sendable {
    case created, removed, replaced, written, entriesChanged, minor, nothing

    init(from old: FileSnapshot?, to new: FileSnapshot?, heard: FileEvents) {
        switch (old, new) {
        case (nil, nil): self = heard.isEmpty ? .nothing : .minor
        case (nil, .some): self = .created
        case (.some, nil): self = .removed
        case (.some(let old), .some(let new)):
            let isAnother = old.identity != new.identity || old.isDirectory != new.isDirectory
            let looksChanged = old != new && !heard.isDisjoint(with: [.look, .rewatch])
            if isAnother || heard.contains(.arrived) {
                self = .replaced
            } else if heard.contains(.written) {
                self = .written
            } else if heard.contains(.entries) {
                self = .entriesChanged
            } else if looksChanged {
                self = new.isDirectory ? .entriesChanged : .written
            } else {
                self = heard.isEmpty ? .nothing : .minor
            }
        }
    }

    /// What the signal says for people; nil: it does not fire.
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

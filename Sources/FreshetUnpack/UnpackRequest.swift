/// What a helper has to unpack, as the arguments of its command line.
package struct UnpackRequest: Hashable, Sendable {
    /// The format of the input.
    package enum Format: String, CaseIterable, Hashable, Sendable {
        case gzip, zstd, xz, bzip2
        /// Also compressed, in any of the formats above.
        case tar
        case zip

        /// Whether the input has members, of which one is unpacked.
        package var isArchive: Bool { self == .tar || self == .zip }
    }

    package var format: Format
    /// The path of the member of an archive; empty for other formats. See ``MemberPattern``.
    package var member: String
    /// The most bytes of output.
    package var maxOutput: UInt64

    package init(_ format: Format, member: String = "", maxOutput: UInt64) {
        self.format = format
        self.member = member
        self.maxOutput = maxOutput
    }

    /// The arguments after ``UnpackHelper/argument``.
    package var arguments: [String] { [format.rawValue, String(maxOutput), member] }

    init?(arguments: some Collection<String>) {
        let arguments = Array(arguments)
        guard arguments.count == 3, let format = Format(rawValue: arguments[0]), let maxOutput = UInt64(arguments[1])
        else { return nil }
        self.init(format, member: arguments[2], maxOutput: maxOutput)
    }
}

/// The path of a member, in which each `*` stands for any part of one path component.
///
/// A path is only compared. Nothing is created at it, so `..` and a leading `/` have no special meaning.
package struct MemberPattern: Hashable, Sendable {
    private let parts: [[UInt8]]

    package init(_ pattern: String) {
        parts = pattern.utf8.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false).map(Array.init)
    }

    /// Whether the pattern has a `*`.
    package var isWild: Bool { parts.count > 1 }

    /// Whether a path matches. Its cost is linear in the length of the path for each `*`.
    package func matches(_ path: some Collection<UInt8>) -> Bool {
        var rest = Array(path)[...]
        for (index, part) in parts.enumerated() {
            guard index > 0 else {
                guard rest.starts(with: part) else { return false }
                rest = rest.dropFirst(part.count)
                continue
            }
            // The last part has to be at the end; for each other part, the first occurrence leaves the most.
            let isLast = index == parts.count - 1
            let end = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
            guard let start = Self.start(of: part, in: rest, upTo: end, isLast: isLast) else { return false }
            rest = rest[(start + part.count)...]
        }
        return rest.isEmpty
    }

    /// Where a part begins that follows a `*`: at most at `end`, since the `*` stands for no `/`.
    private static func start(
        of part: [UInt8], in path: ArraySlice<UInt8>, upTo end: Int, isLast: Bool
    ) -> Int? {
        guard path.count >= part.count else { return nil }
        let last = path.endIndex - part.count
        if isLast { return last <= end && path[last...].elementsEqual(part) ? last : nil }
        guard path.startIndex <= min(end, last) else { return nil }
        return (path.startIndex...min(end, last)).first { path[$0...].starts(with: part) }
    }
}

import FreshetPipelines
import Glibc

/// The text of a file that was read without errors. Another file that differs from it only in simple values has the same
/// tree, except for the texts of these values: it need not be parsed. Files of a generated configuration are like that.
///
///     source: {url: 'https://example.com/a.json'}
///     source: {url: 'https://example.com/bc.json'}
///
/// A value is simple if YAML reads it in the same way wherever the other value stands: a part of one line in quotation
/// marks without escapes, or a plain scalar of letters, digits and a few other characters. All else has to be equal byte
/// by byte: keys, punctuation, other comments, line breaks and all other values. The comments before everything else may
/// differ too, line by line: generated files often begin with their name.
struct YAMLShape {
    /// The largest text that is kept, in bytes.
    static let maximumSize = 16 << 10
    /// How many values such a text may have.
    static let maximumValues = 256
    /// The longest value that may differ, in bytes. A key of YAML ends at most 1,024 characters after its beginning, so
    /// the place of a key could depend on a long value.
    static let maximumLength = 512

    private let bytes: [UInt8]
    private let head: Head
    private let root: Node
    /// All values in the order of the tree.
    private let values: [Value]

    private struct Value {
        var range: Range<Int>
        /// Nil: the value has to be equal.
        var style: Style?
    }

    private enum Style {
        case quoted(UInt8)
        /// - Parameter hasColon: whether the value has a colon inside, which versions of libyaml treat differently.
        case plain(hasColon: Bool)
    }

    /// - Parameters:
    ///   - source: the text.
    ///   - root: its tree, read without errors.
    ///   - values: the places of all scalars that are not keys, in the order of the text. Nil is returned if the text is
    ///     too long, or has other characters than ASCII or a backslash.
    init?(_ source: SourceText, root: Node, values: [Range<Int>]) {
        guard source.bytes.count <= Self.maximumSize, values.count <= Self.maximumValues,
            !source.mayHaveOtherCharacters
        else { return nil }
        bytes = source.bytes
        head = source.bytes.withUnsafeBufferPointer { Head(of: $0) }
        self.root = root
        self.values = source.bytes.withUnsafeBufferPointer { bytes in
            values.map { range in
                guard let style = Self.style(of: range, in: bytes),
                    Self.end(ofValueAt: range.lowerBound, style, in: bytes) == range.upperBound
                else { return Value(range: range) }
                return Value(range: range, style: style)
            }
        }
    }

    /// The tree of another file; nil if its text differs in more than simple values.
    func root(of source: SourceText) -> Node? {
        source.bytes.withUnsafeBufferPointer { new in
            bytes.withUnsafeBufferPointer { old in
                guard let places = places(in: new, old) else { return nil }
                var copy = Copy(new: new, old: old, file: source.file, values: values, places: places)
                return copy.node(root)
            }
        }
    }

    /// Where the values with a style are in the other text.
    private func places(
        in new: UnsafeBufferPointer<UInt8>, _ old: UnsafeBufferPointer<UInt8>
    ) -> [Range<Int>]? {
        var places: [Range<Int>] = []
        places.reserveCapacity(values.count)
        let newHead = Head(of: new)
        guard newHead.lines == head.lines else { return nil }
        var (start, position) = (head.length, newHead.length)
        for value in values {
            guard let style = value.style else { continue }
            let length = value.range.lowerBound - start
            guard Self.isEqual(new, position, old, start, length),
                let end = Self.end(ofValueAt: position + length, style, in: new)
            else { return nil }
            places.append(position + length..<end)
            (start, position) = (value.range.upperBound, end)
        }
        guard new.count - position == old.count - start,
            Self.isEqual(new, position, old, start, old.count - start)
        else { return nil }
        return places
    }

    private static func isEqual(
        _ new: UnsafeBufferPointer<UInt8>, _ position: Int, _ old: UnsafeBufferPointer<UInt8>, _ start: Int,
        _ length: Int
    ) -> Bool {
        guard length > 0 else { return length == 0 }
        guard let new = UnsafeRawBufferPointer(new).baseAddress.map({ $0 + position }), position >= 0,
            let old = UnsafeRawBufferPointer(old).baseAddress.map({ $0 + start }), start >= 0
        else { return false }
        return memcmp(new, old, length) == 0
    }

    /// The comments at the beginning of a file, each of which is a line. Each has only printable characters of ASCII.
    private struct Head {
        var lines = 0
        /// The bytes of these lines, with their ends.
        var length = 0

        init(of bytes: UnsafeBufferPointer<UInt8>) {
            var index = 0
            while index < bytes.count, bytes[index] == UInt8(ascii: "#") {
                while index < bytes.count, (0x20...0x7E).contains(bytes[index]) { index += 1 }
                guard index < bytes.count, bytes[index] == UInt8(ascii: "\n") else { return }
                index += 1
                (lines, length) = (lines + 1, index)
            }
        }
    }

    // MARK: Simple values

    private static func style(of range: Range<Int>, in bytes: UnsafeBufferPointer<UInt8>) -> Style? {
        guard !range.isEmpty, range.upperBound <= bytes.count else { return nil }
        switch bytes[range.lowerBound] {
        case UInt8(ascii: "'"), UInt8(ascii: "\""): return .quoted(bytes[range.lowerBound])
        default: return .plain(hasColon: bytes[range].contains(UInt8(ascii: ":")))
        }
    }

    /// Where the simple value that begins at an index ends; nil: there is none.
    private static func end(
        ofValueAt start: Int, _ style: Style, in bytes: UnsafeBufferPointer<UInt8>
    ) -> Int? {
        let limit = min(bytes.count, start + maximumLength)
        guard start < limit else { return nil }
        var index = start
        switch style {
        case .quoted(let mark):
            guard bytes[start] == mark else { return nil }
            index += 1
            while index < limit {
                let byte = bytes[index]
                index += 1
                // Two quotation marks are one of the text.
                if byte == mark { return index < bytes.count && bytes[index] == mark ? nil : index }
                guard (0x20...0x7E).contains(byte), byte != UInt8(ascii: "\\") else { return nil }
            }
            return nil
        case .plain(let hasColon):
            guard HTTPText.isLetterOrDigit(bytes[start]) || bytes[start] == UInt8(ascii: "/") else { return nil }
            while index < limit, continuesPlain(index, hasColon, in: bytes) { index += 1 }
            return index < limit ? index : nil
        }
    }

    private static func continuesPlain(
        _ index: Int, _ hasColon: Bool, in bytes: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        let byte = bytes[index]
        switch byte {
        case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "/"): return true
        // Before anything else a colon may end a key, and a space the value.
        case UInt8(ascii: ":"), UInt8(ascii: " "):
            guard byte == UInt8(ascii: " ") || hasColon, index + 1 < bytes.count else { return false }
            return HTTPText.isLetterOrDigit(bytes[index + 1])
                || byte == UInt8(ascii: ":") && bytes[index + 1] == UInt8(ascii: "/")
        default: return HTTPText.isLetterOrDigit(byte)
        }
    }

    // MARK: The tree

    /// Copies the tree with the texts and the locations of the other file.
    private struct Copy {
        let new: UnsafeBufferPointer<UInt8>
        let old: UnsafeBufferPointer<UInt8>
        let file: String
        let values: [Value]
        let places: [Range<Int>]
        var value = 0
        var place = 0
        /// The line of the last location, and by how much its columns have moved there.
        var line = 0
        var shift = 0

        mutating func node(_ node: Node) -> Node {
            let location = location(node.location)
            switch node.content {
            case .scalar(let scalar):
                return Node(content: .scalar(self.scalar(scalar)), location: location)
            case .sequence(let nodes):
                var elements: [Node] = []
                elements.reserveCapacity(nodes.count)
                for index in nodes.indices { elements.append(self.node(nodes[index])) }
                return Node(content: .sequence(elements), location: location)
            case .mapping(let entries):
                var copies: [Node.Entry] = []
                copies.reserveCapacity(entries.count)
                for index in entries.indices {
                    let place = self.location(entries[index].location)
                    copies.append(
                        Node.Entry(key: entries[index].key, location: place, value: self.node(entries[index].value)))
                }
                return Node(content: .mapping(copies), location: location)
            case .removed, .invalid:
                return Node(content: node.content, location: location)
            }
        }

        private mutating func scalar(_ scalar: Node.Scalar) -> Node.Scalar {
            guard value < values.count else { return scalar }
            defer { value += 1 }
            guard let style = values[value].style else { return scalar }
            let (before, now) = (values[value].range, places[place])
            place += 1
            shift += now.count - before.count
            if now.count == before.count,
                YAMLShape.isEqual(new, now.lowerBound, old, before.lowerBound, now.count)
            {
                return scalar
            }
            let text: Range<Int> =
                switch style {
                case .quoted: now.lowerBound + 1..<now.upperBound - 1
                case .plain: now
                }
            return Node.Scalar(
                text: String(decoding: UnsafeBufferPointer(rebasing: new[text]), as: UTF8.self),
                isPlain: scalar.isPlain)
        }

        private mutating func location(_ location: Location) -> Location {
            if location.line != line { (line, shift) = (location.line, 0) }
            return Location(file: file, line: location.line, column: location.column + shift)
        }
    }
}

/// What was read of files before, for the next files that have the same parts. Only for texts without other characters
/// than ASCII: others may be equal and have different bytes.
final class ReadingMemory {
    /// How many shapes, and how many values of a section, are kept.
    private static let maximumCount = 4

    private var shapes: [YAMLShape] = []
    private var policies: [(node: Node, policy: RefreshPolicy)] = []
    /// The last definition, with which the next one shares its equal parts.
    var last: PipelineDefinition?

    /// The tree of a file whose shape is known.
    func root(of source: SourceText) -> Node? {
        for index in shapes.indices {
            guard let root = shapes[index].root(of: source) else { continue }
            if index > 0 { shapes.swapAt(0, index) }
            return root
        }
        return nil
    }

    func keep(_ shape: YAMLShape) {
        if shapes.count == Self.maximumCount { shapes.removeLast() }
        shapes.insert(shape, at: 0)
    }

    /// The policy of an equal section.
    func policy(of node: Node) -> RefreshPolicy? {
        policies.first { $0.node.hasSameContent(as: node) }?.policy
    }

    /// - Parameter node: a section in which there are no errors and warnings, and which names no pipelines.
    func keep(_ policy: RefreshPolicy, of node: Node) {
        if policies.count == Self.maximumCount { policies.removeLast() }
        policies.insert((node, policy), at: 0)
    }
}
